#ifndef TESSERA_ENGINE_IPC_WORKER_MESSAGES_H_
#define TESSERA_ENGINE_IPC_WORKER_MESSAGES_H_

#include "absl/status/statusor.h"
#include "engine/core/step.h"
#include "engine/ipc/worker_channel.h"
#include "tessera/worker/v1/worker.pb.h"

// Between the engine's values and worker.proto. Both ends are of one build, but neither trusts the
// other's counts: whatever comes off the wire is bounded before it is used.

namespace tessera::engine {

// Largest message of the worker protocol: a plan of kPlanTokensMax tokens with its blocks.
inline constexpr int kWorkerMessageBytesMax = 16 << 20;
inline constexpr int kPlanTokensMax = 1 << 20;
inline constexpr int kPlanSequencesMax = 1 << 16;
inline constexpr int kPlanBlocksMax = 1 << 20;
inline constexpr int kSamplingEntriesMax = 4096;  // bias and end ids of one sequence, each
inline constexpr int kResultLogprobsMax = 64;
inline constexpr int kLoadWarningsMax = 32;

void ToProto(const WorkerLoad& load, worker::v1::LoadRequest& proto);
void ToProto(const StepPlan& plan, worker::v1::StepPlan& proto);
void ToProto(const StepResult& result, worker::v1::StepResult& proto);

// Errors: kInvalidArgument names the field and the limit. What the ids mean is not checked here.
absl::StatusOr<WorkerLoad> FromProto(const worker::v1::LoadRequest& proto);
absl::StatusOr<StepPlan> FromProto(const worker::v1::StepPlan& proto);
absl::StatusOr<StepResult> FromProto(const worker::v1::StepResult& proto);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_IPC_WORKER_MESSAGES_H_

#ifndef TESSERA_ENGINE_IPC_WORKER_CHANNEL_H_
#define TESSERA_ENGINE_IPC_WORKER_CHANNEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/core/step.h"

namespace tessera::engine {

// Plans that a worker may hold: the second is planned while the first runs.
inline constexpr uint32_t kPlansInFlightMax = 2;

// What a worker loads and reserves.
struct WorkerLoad {
  std::string model_path;
  uint32_t slots = 1;
  uint32_t blocks = 1;
  uint32_t block_tokens = 16;
  uint32_t step_tokens_max = 1;
  uint32_t rank = 0;
  uint32_t world_size = 1;
};

struct WorkerProgress {
  std::string phase;
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
};

// What a worker tells. Threading: any thread, one call at a time for one channel, in the order in
// which things happened; implementations must not block, nor destroy the channel.
class WorkerEvents {
 public:
  virtual ~WorkerEvents() = default;
  virtual void OnLoadProgress(const WorkerProgress& progress) = 0;
  // The load is over, well or not. `warnings` are for an operator.
  virtual void OnLoaded(const absl::Status& status, const std::vector<std::string>& warnings) = 0;
  // The result of the oldest plan that has had none.
  virtual void OnResult(StepResult result) = 0;
  // The worker cannot go on: it died, hung up, or broke the protocol. Once; nothing comes after.
  virtual void OnLost(const absl::Status& status) = 0;
};

// The engine's end of one worker. A lost channel is never mended: a new worker gets a new channel.
// Ownership: borrows the events, which outlive it. Destroying it ends the worker's streams.
// Threading: StartLoad, Send and Close from one thread at a time.
class WorkerChannel {
 public:
  virtual ~WorkerChannel() = default;
  // Starts to load; OnLoadProgress and then OnLoaded report. Once. Returns at once.
  virtual void StartLoad(const WorkerLoad& load) = 0;
  // Hands a plan over and returns at once; OnResult answers it, or OnLost answers for all. Only
  // after OnLoaded(OK), and never more than kPlansInFlightMax unanswered.
  virtual void Send(const StepPlan& plan) = 0;
  // Ends the streams. OnLost may or may not still come.
  virtual void Close() = 0;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_IPC_WORKER_CHANNEL_H_

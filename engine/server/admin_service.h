#ifndef TESSERA_ENGINE_SERVER_ADMIN_SERVICE_H_
#define TESSERA_ENGINE_SERVER_ADMIN_SERVICE_H_

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/executor/executor.h"
#include "engine/server/engine_state.h"
#include "grpcpp/grpcpp.h"
#include "services/common/log.h"
#include "tessera/engine/v1/engine.grpc.pb.h"

namespace tessera::engine {

inline constexpr char kEngineAdminServiceName[] = "tessera.engine.v1.EngineAdminService";
inline constexpr absl::Duration kDrainLimitMax = absl::Hours(24);

// tessera.engine.v1.EngineAdminService. One Drain at a time; it has a thread while it waits.
// Ownership: borrows its parts.  Threading: gRPC's.
class AdminServiceAdapter final : public v1::EngineAdminService::CallbackService {
 public:
  AdminServiceAdapter(Executor& executor, EngineState& state, absl::Duration drain_limit,
                      const services::Logger& log)
      : executor_(executor), state_(state), drain_limit_(drain_limit), log_(log) {}
  // Joins the drain's thread: stop the executor first, which ends what it waits for.
  ~AdminServiceAdapter() override;

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;
  grpc::ServerUnaryReactor* Sleep(grpc::CallbackServerContext* context, const v1::SleepRequest*,
                                  v1::SleepResponse*) override;
  grpc::ServerUnaryReactor* Wake(grpc::CallbackServerContext* context, const v1::WakeRequest*,
                                 v1::WakeResponse*) override;
  grpc::ServerUnaryReactor* LoadModel(grpc::CallbackServerContext* context,
                                      const v1::LoadModelRequest*, v1::LoadModelResponse*) override;
  grpc::ServerUnaryReactor* UnloadModel(grpc::CallbackServerContext* context,
                                        const v1::UnloadModelRequest*,
                                        v1::UnloadModelResponse*) override;

 private:
  // Waits, cuts what is left; returns how many were cut.
  uint32_t AwaitDrained(absl::Duration limit);

  Executor& executor_;
  EngineState& state_;
  const absl::Duration drain_limit_;
  const services::Logger& log_;
  absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread drain_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SERVER_ADMIN_SERVICE_H_

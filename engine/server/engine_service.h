#ifndef TESSERA_ENGINE_SERVER_ENGINE_SERVICE_H_
#define TESSERA_ENGINE_SERVER_ENGINE_SERVICE_H_

#include <atomic>
#include <memory>
#include <string>

#include "engine/core/clock.h"
#include "engine/executor/executor.h"
#include "engine/server/engine_metrics.h"
#include "engine/server/engine_state.h"
#include "engine/server/model_facts.h"
#include "grpcpp/grpcpp.h"
#include "services/common/log.h"
#include "services/common/request_id.h"
#include "tessera/engine/v1/engine.grpc.pb.h"

namespace tessera::engine {

inline constexpr char kEngineServiceName[] = "tessera.engine.v1.EngineService";
inline constexpr int kAbortIdsMax = 1024;

// tessera.engine.v1.EngineService over an Executor: checks requests, turns events into messages.
// A reader that falls behind by the stream's limits is cut, and its request cancelled; running
// ahead of it costs no one else anything but that bounded buffer. Ownership: borrows everything.
// Threading: gRPC's; nothing here waits.
class EngineServiceAdapter final : public v1::EngineService::CallbackService {
 public:
  struct Parts {
    Executor& executor;
    const Clock& clock;
    const ModelFacts& model;
    const EngineState& state;
    services::RequestIds& request_ids;
    EngineMetrics& metrics;
    const services::Logger& log;
  };
  explicit EngineServiceAdapter(const Parts& parts) : parts_(parts) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* request) override;
  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const v1::GetModelInfoRequest* request,
                                         v1::GetModelInfoResponse* response) override;
  grpc::ServerUnaryReactor* GetLoad(grpc::CallbackServerContext* context,
                                    const v1::GetLoadRequest* request,
                                    v1::GetLoadResponse* response) override;
  grpc::ServerUnaryReactor* Abort(grpc::CallbackServerContext* context,
                                  const v1::AbortRequest* request,
                                  v1::AbortResponse* response) override;

 private:
  class Sink;
  absl::StatusOr<GenerationRequest> Check(const v1::GenerateRequest& proto,
                                          const std::string& context_id, absl::Duration remaining);
  absl::Status Submit(GenerationRequest request, bool id_is_given, std::shared_ptr<Sink> sink);

  const Parts parts_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SERVER_ENGINE_SERVICE_H_

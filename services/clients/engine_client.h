#ifndef TESSERA_SERVICES_CLIENTS_ENGINE_CLIENT_H_
#define TESSERA_SERVICES_CLIENTS_ENGINE_CLIENT_H_

#include <memory>

#include "grpcpp/channel.h"
#include "services/clients/health_watch.h"
#include "services/common/call_context.h"
#include "services/common/stream/client_call.h"
#include "tessera/engine/v1/engine.pb.h"

namespace tessera::services {

// The engine, as the tokenizer sees it. Calls never block; answers come on gRPC's threads.
// Threading: any thread.
class EngineClient {
 public:
  using GenerateEvents = ClientStreamEvents<engine::v1::GenerateResponse>;

  virtual ~EngineClient() = default;
  virtual std::shared_ptr<ClientCall> Generate(const CallContext& context,
                                               engine::v1::GenerateRequest request,
                                               GenerateEvents events) = 0;
  virtual std::shared_ptr<ClientCall> GetModelInfo(
      const CallContext& context, UnaryDone<engine::v1::GetModelInfoResponse> done) = 0;
  virtual std::shared_ptr<ClientCall> GetLoad(const CallContext& context,
                                              UnaryDone<engine::v1::GetLoadResponse> done) = 0;
  virtual std::shared_ptr<ClientCall> Abort(const CallContext& context,
                                            engine::v1::AbortRequest request,
                                            UnaryDone<engine::v1::AbortResponse> done) = 0;
  // Health of tessera.engine.v1.EngineService.
  virtual std::unique_ptr<HealthWatch> Watch(HealthChanged changed) = 0;
};

std::unique_ptr<EngineClient> MakeEngineClient(std::shared_ptr<grpc::Channel> channel);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_CLIENTS_ENGINE_CLIENT_H_

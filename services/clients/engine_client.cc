#include "services/clients/engine_client.h"

#include <utility>

#include "services/clients/channel.h"
#include "services/common/stream/client_stream.h"
#include "services/common/stream/unary.h"
#include "tessera/engine/v1/engine.grpc.pb.h"

namespace tessera::services {
namespace {

constexpr char kServiceName[] = "tessera.engine.v1.EngineService";

// A short question of a caller without a deadline of its own.
CallContext Short(CallContext context) {
  context.LimitTo(kUnaryDurationMax);
  return context;
}

class GrpcEngineClient final : public EngineClient {
 public:
  explicit GrpcEngineClient(std::shared_ptr<grpc::Channel> channel)
      : channel_(std::move(channel)), stub_(engine::v1::EngineService::NewStub(channel_)) {}

  std::shared_ptr<ClientCall> Generate(
      const CallContext& context, engine::v1::GenerateRequest request,
      ClientStreamEvents<engine::v1::GenerateResponse> events) override {
    return ClientStream<engine::v1::GenerateRequest, engine::v1::GenerateResponse>::Start(
        context, std::move(request), std::move(events),
        [this](auto* c, auto* q, auto* r) { stub_->async()->Generate(c, q, r); });
  }

  std::shared_ptr<ClientCall> GetModelInfo(
      const CallContext& context, UnaryDone<engine::v1::GetModelInfoResponse> done) override {
    return UnaryCall<engine::v1::GetModelInfoRequest, engine::v1::GetModelInfoResponse>::Start(
        Short(context), {}, std::move(done), [this](auto* c, auto* q, auto* a, auto f) {
          stub_->async()->GetModelInfo(c, q, a, std::move(f));
        });
  }

  std::shared_ptr<ClientCall> GetLoad(const CallContext& context,
                                      UnaryDone<engine::v1::GetLoadResponse> done) override {
    return UnaryCall<engine::v1::GetLoadRequest, engine::v1::GetLoadResponse>::Start(
        Short(context), {}, std::move(done), [this](auto* c, auto* q, auto* a, auto f) {
          stub_->async()->GetLoad(c, q, a, std::move(f));
        });
  }

  std::shared_ptr<ClientCall> Abort(const CallContext& context, engine::v1::AbortRequest request,
                                    UnaryDone<engine::v1::AbortResponse> done) override {
    return UnaryCall<engine::v1::AbortRequest, engine::v1::AbortResponse>::Start(
        Short(context), std::move(request), std::move(done),
        [this](auto* c, auto* q, auto* a, auto f) {
          stub_->async()->Abort(c, q, a, std::move(f));
        });
  }

  std::unique_ptr<HealthWatch> Watch(HealthChanged changed) override {
    return WatchHealth(channel_, kServiceName, std::move(changed));
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<engine::v1::EngineService::Stub> stub_;
};

}  // namespace

std::unique_ptr<EngineClient> MakeEngineClient(std::shared_ptr<grpc::Channel> channel) {
  return std::make_unique<GrpcEngineClient>(std::move(channel));
}

}  // namespace tessera::services

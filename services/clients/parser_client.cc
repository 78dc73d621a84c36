#include "services/clients/parser_client.h"

#include <utility>

#include "services/clients/channel.h"
#include "services/common/stream/client_stream.h"
#include "services/common/stream/unary.h"
#include "tessera/parser/v1/parser.grpc.pb.h"

namespace tessera::services {
namespace {

constexpr char kServiceName[] = "tessera.parser.v1.ParserService";

// A short question of a caller without a deadline of its own.
CallContext Short(CallContext context) {
  context.LimitTo(kUnaryDurationMax);
  return context;
}

class GrpcParserClient final : public ParserClient {
 public:
  explicit GrpcParserClient(std::shared_ptr<grpc::Channel> channel)
      : channel_(std::move(channel)), stub_(parser::v1::ParserService::NewStub(channel_)) {}

  std::shared_ptr<ClientCall> Chat(const CallContext& context, parser::v1::ChatRequest request,
                                   UnaryDone<parser::v1::ChatResponse> done) override {
    return UnaryCall<parser::v1::ChatRequest, parser::v1::ChatResponse>::Start(
        context, std::move(request), std::move(done),
        [this](auto* c, auto* q, auto* a, auto f) { stub_->async()->Chat(c, q, a, std::move(f)); });
  }

  std::shared_ptr<ClientCall> ChatStream(
      const CallContext& context, parser::v1::ChatStreamRequest request,
      ClientStreamEvents<parser::v1::ChatStreamResponse> events) override {
    return ClientStream<parser::v1::ChatStreamRequest, parser::v1::ChatStreamResponse>::Start(
        context, std::move(request), std::move(events),
        [this](auto* c, auto* q, auto* r) { stub_->async()->ChatStream(c, q, r); });
  }

  std::shared_ptr<ClientCall> CompleteStream(
      const CallContext& context, parser::v1::CompleteStreamRequest request,
      ClientStreamEvents<parser::v1::CompleteStreamResponse> events) override {
    return ClientStream<parser::v1::CompleteStreamRequest,
                        parser::v1::CompleteStreamResponse>::Start(context, std::move(request),
                                                                   std::move(events),
                                                                   [this](auto* c, auto* q,
                                                                          auto* r) {
                                                                     stub_->async()->CompleteStream(
                                                                         c, q, r);
                                                                   });
  }

  std::shared_ptr<ClientCall> ParseReasoning(
      const CallContext& context, parser::v1::ParseReasoningRequest request,
      UnaryDone<parser::v1::ParseReasoningResponse> done) override {
    return UnaryCall<parser::v1::ParseReasoningRequest, parser::v1::ParseReasoningResponse>::Start(
        Short(context), std::move(request), std::move(done),
        [this](auto* c, auto* q, auto* a, auto f) {
          stub_->async()->ParseReasoning(c, q, a, std::move(f));
        });
  }

  std::shared_ptr<ClientCall> ParseToolCalls(
      const CallContext& context, parser::v1::ParseToolCallsRequest request,
      UnaryDone<parser::v1::ParseToolCallsResponse> done) override {
    return UnaryCall<parser::v1::ParseToolCallsRequest, parser::v1::ParseToolCallsResponse>::Start(
        Short(context), std::move(request), std::move(done),
        [this](auto* c, auto* q, auto* a, auto f) {
          stub_->async()->ParseToolCalls(c, q, a, std::move(f));
        });
  }

  std::shared_ptr<ClientCall> GetModelInfo(
      const CallContext& context, UnaryDone<parser::v1::GetModelInfoResponse> done) override {
    return UnaryCall<parser::v1::GetModelInfoRequest, parser::v1::GetModelInfoResponse>::Start(
        Short(context), {}, std::move(done), [this](auto* c, auto* q, auto* a, auto f) {
          stub_->async()->GetModelInfo(c, q, a, std::move(f));
        });
  }

  std::unique_ptr<HealthWatch> Watch(HealthChanged changed) override {
    return WatchHealth(channel_, kServiceName, std::move(changed));
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<parser::v1::ParserService::Stub> stub_;
};

}  // namespace

std::unique_ptr<ParserClient> MakeParserClient(std::shared_ptr<grpc::Channel> channel) {
  return std::make_unique<GrpcParserClient>(std::move(channel));
}

}  // namespace tessera::services

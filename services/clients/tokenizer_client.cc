#include "services/clients/tokenizer_client.h"

#include <utility>

#include "services/clients/channel.h"
#include "services/common/stream/client_stream.h"
#include "services/common/stream/unary.h"
#include "tessera/tokenizer/v1/tokenizer.grpc.pb.h"

namespace tessera::services {
namespace {

constexpr char kServiceName[] = "tessera.tokenizer.v1.TokenizerService";

// A short question of a caller without a deadline of its own.
CallContext Short(CallContext context) {
  context.LimitTo(kUnaryDurationMax);
  return context;
}

class GrpcTokenizerClient final : public TokenizerClient {
 public:
  explicit GrpcTokenizerClient(std::shared_ptr<grpc::Channel> channel)
      : channel_(std::move(channel)), stub_(tokenizer::v1::TokenizerService::NewStub(channel_)) {}

  std::shared_ptr<ClientCall> Generate(
      const CallContext& context, tokenizer::v1::GenerateRequest request,
      ClientStreamEvents<tokenizer::v1::GenerateResponse> events) override {
    return ClientStream<tokenizer::v1::GenerateRequest, tokenizer::v1::GenerateResponse>::Start(
        context, std::move(request), std::move(events),
        [this](auto* c, auto* q, auto* r) { stub_->async()->Generate(c, q, r); });
  }

  std::shared_ptr<ClientCall> Tokenize(const CallContext& context,
                                       tokenizer::v1::TokenizeRequest request,
                                       UnaryDone<tokenizer::v1::TokenizeResponse> done) override {
    return UnaryCall<tokenizer::v1::TokenizeRequest, tokenizer::v1::TokenizeResponse>::Start(
        Short(context), std::move(request), std::move(done),
        [this](auto* c, auto* q, auto* a, auto f) {
          stub_->async()->Tokenize(c, q, a, std::move(f));
        });
  }

  std::shared_ptr<ClientCall> Detokenize(
      const CallContext& context, tokenizer::v1::DetokenizeRequest request,
      UnaryDone<tokenizer::v1::DetokenizeResponse> done) override {
    return UnaryCall<tokenizer::v1::DetokenizeRequest, tokenizer::v1::DetokenizeResponse>::Start(
        Short(context), std::move(request), std::move(done),
        [this](auto* c, auto* q, auto* a, auto f) {
          stub_->async()->Detokenize(c, q, a, std::move(f));
        });
  }

  std::shared_ptr<ClientCall> RenderChat(
      const CallContext& context, tokenizer::v1::RenderChatRequest request,
      UnaryDone<tokenizer::v1::RenderChatResponse> done) override {
    return UnaryCall<tokenizer::v1::RenderChatRequest, tokenizer::v1::RenderChatResponse>::Start(
        Short(context), std::move(request), std::move(done),
        [this](auto* c, auto* q, auto* a, auto f) {
          stub_->async()->RenderChat(c, q, a, std::move(f));
        });
  }

  std::shared_ptr<ClientCall> GetTokenizer(
      const CallContext& context,
      ClientStreamEvents<tokenizer::v1::GetTokenizerResponse> events) override {
    return ClientStream<tokenizer::v1::GetTokenizerRequest,
                        tokenizer::v1::GetTokenizerResponse>::Start(context, {}, std::move(events),
                                                                    [this](auto* c, auto* q,
                                                                           auto* r) {
                                                                      stub_->async()->GetTokenizer(
                                                                          c, q, r);
                                                                    });
  }

  std::shared_ptr<ClientCall> GetModelInfo(
      const CallContext& context, UnaryDone<tokenizer::v1::GetModelInfoResponse> done) override {
    return UnaryCall<tokenizer::v1::GetModelInfoRequest,
                     tokenizer::v1::GetModelInfoResponse>::Start(Short(context), {},
                                                                 std::move(done),
                                                                 [this](auto* c, auto* q, auto* a,
                                                                        auto f) {
                                                                   stub_->async()->GetModelInfo(
                                                                       c, q, a, std::move(f));
                                                                 });
  }

  std::unique_ptr<HealthWatch> Watch(HealthChanged changed) override {
    return WatchHealth(channel_, kServiceName, std::move(changed));
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<tokenizer::v1::TokenizerService::Stub> stub_;
};

}  // namespace

std::unique_ptr<TokenizerClient> MakeTokenizerClient(std::shared_ptr<grpc::Channel> channel) {
  return std::make_unique<GrpcTokenizerClient>(std::move(channel));
}

}  // namespace tessera::services

#ifndef TESSERA_SERVICES_CLIENTS_FAKE_TOKENIZER_CLIENT_H_
#define TESSERA_SERVICES_CLIENTS_FAKE_TOKENIZER_CLIENT_H_

#include <functional>
#include <memory>
#include <utility>

#include "services/clients/fake_health.h"
#include "services/clients/fake_stream.h"
#include "services/clients/tokenizer_client.h"

namespace tessera::services {

// A scripted tokenizer for the tests of the hop above; see fake_engine_client.h.
class FakeTokenizerClient final : public TokenizerClient {
 public:
  using GenerateStream = FakeStream<tokenizer::v1::GenerateResponse>;
  using FileStream = FakeStream<tokenizer::v1::GetTokenizerResponse>;

  std::function<void(const CallContext&, const tokenizer::v1::GenerateRequest&,
                     std::shared_ptr<GenerateStream>)>
      on_generate = [](const auto&, const auto&, auto stream) { stream->Finish(absl::OkStatus()); };
  std::function<absl::StatusOr<tokenizer::v1::TokenizeResponse>(
      const tokenizer::v1::TokenizeRequest&)>
      on_tokenize = [](const auto&) { return tokenizer::v1::TokenizeResponse(); };
  std::function<absl::StatusOr<tokenizer::v1::DetokenizeResponse>(
      const tokenizer::v1::DetokenizeRequest&)>
      on_detokenize = [](const auto&) { return tokenizer::v1::DetokenizeResponse(); };
  std::function<absl::StatusOr<tokenizer::v1::RenderChatResponse>(
      const tokenizer::v1::RenderChatRequest&)>
      on_render_chat = [](const auto&) { return tokenizer::v1::RenderChatResponse(); };
  std::function<void(std::shared_ptr<FileStream>)> on_get_tokenizer = [](auto stream) {
    stream->Finish(absl::OkStatus());
  };
  std::function<absl::StatusOr<tokenizer::v1::GetModelInfoResponse>()> on_get_model_info = [] {
    return tokenizer::v1::GetModelInfoResponse();
  };
  FakeHealth health{true};

  std::shared_ptr<ClientCall> Generate(const CallContext& context,
                                       tokenizer::v1::GenerateRequest request,
                                       GenerateEvents events) override {
    auto stream = std::make_shared<GenerateStream>(std::move(events));
    on_generate(context, request, stream);
    return stream;
  }
  std::shared_ptr<ClientCall> Tokenize(const CallContext&, tokenizer::v1::TokenizeRequest request,
                                       UnaryDone<tokenizer::v1::TokenizeResponse> done) override {
    done(on_tokenize(request));
    return std::make_shared<Answered>();
  }
  std::shared_ptr<ClientCall> Detokenize(
      const CallContext&, tokenizer::v1::DetokenizeRequest request,
      UnaryDone<tokenizer::v1::DetokenizeResponse> done) override {
    done(on_detokenize(request));
    return std::make_shared<Answered>();
  }
  std::shared_ptr<ClientCall> RenderChat(
      const CallContext&, tokenizer::v1::RenderChatRequest request,
      UnaryDone<tokenizer::v1::RenderChatResponse> done) override {
    done(on_render_chat(request));
    return std::make_shared<Answered>();
  }
  std::shared_ptr<ClientCall> GetTokenizer(
      const CallContext&, ClientStreamEvents<tokenizer::v1::GetTokenizerResponse> events) override {
    auto stream = std::make_shared<FileStream>(std::move(events));
    on_get_tokenizer(stream);
    return stream;
  }
  std::shared_ptr<ClientCall> GetModelInfo(
      const CallContext&, UnaryDone<tokenizer::v1::GetModelInfoResponse> done) override {
    done(on_get_model_info());
    return std::make_shared<Answered>();
  }
  std::unique_ptr<HealthWatch> Watch(HealthChanged changed) override {
    return health.Watch(std::move(changed));
  }

 private:
  struct Answered final : ClientCall {
    void Resume() override {}
    void Cancel() override {}
  };
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_CLIENTS_FAKE_TOKENIZER_CLIENT_H_

#ifndef TESSERA_SERVICES_CLIENTS_FAKE_PARSER_CLIENT_H_
#define TESSERA_SERVICES_CLIENTS_FAKE_PARSER_CLIENT_H_

#include <functional>
#include <memory>
#include <utility>

#include "services/clients/fake_health.h"
#include "services/clients/fake_stream.h"
#include "services/clients/parser_client.h"

namespace tessera::services {

// A scripted parser for the tests of the hop above; see fake_engine_client.h. Chat too is handed
// its `done`, so that a test can let it wait.
class FakeParserClient final : public ParserClient {
 public:
  using ChatStreamFake = FakeStream<parser::v1::ChatStreamResponse>;
  using CompleteStreamFake = FakeStream<parser::v1::CompleteStreamResponse>;

  // An unanswered unary call.
  struct Pending final : ClientCall {
    std::function<void()> on_cancel;
    void Resume() override {}
    void Cancel() override {
      if (on_cancel) on_cancel();
    }
  };

  std::function<void(const CallContext&, const parser::v1::ChatRequest&,
                     UnaryDone<parser::v1::ChatResponse>, std::shared_ptr<Pending>)>
      on_chat = [](const auto&, const auto&, auto done, auto) { done(parser::v1::ChatResponse()); };
  std::function<void(const CallContext&, const parser::v1::ChatStreamRequest&,
                     std::shared_ptr<ChatStreamFake>)>
      on_chat_stream =
          [](const auto&, const auto&, auto stream) { stream->Finish(absl::OkStatus()); };
  std::function<void(const CallContext&, const parser::v1::CompleteStreamRequest&,
                     std::shared_ptr<CompleteStreamFake>)>
      on_complete_stream =
          [](const auto&, const auto&, auto stream) { stream->Finish(absl::OkStatus()); };
  std::function<absl::StatusOr<parser::v1::ParseReasoningResponse>(
      const parser::v1::ParseReasoningRequest&)>
      on_parse_reasoning = [](const auto&) { return parser::v1::ParseReasoningResponse(); };
  std::function<absl::StatusOr<parser::v1::ParseToolCallsResponse>(
      const parser::v1::ParseToolCallsRequest&)>
      on_parse_tool_calls = [](const auto&) { return parser::v1::ParseToolCallsResponse(); };
  std::function<absl::StatusOr<parser::v1::GetModelInfoResponse>()> on_get_model_info = [] {
    return parser::v1::GetModelInfoResponse();
  };
  FakeHealth health{true};

  std::shared_ptr<ClientCall> Chat(const CallContext& context, parser::v1::ChatRequest request,
                                   UnaryDone<parser::v1::ChatResponse> done) override {
    auto pending = std::make_shared<Pending>();
    on_chat(context, request, std::move(done), pending);
    return pending;
  }
  std::shared_ptr<ClientCall> ChatStream(
      const CallContext& context, parser::v1::ChatStreamRequest request,
      ClientStreamEvents<parser::v1::ChatStreamResponse> events) override {
    auto stream = std::make_shared<ChatStreamFake>(std::move(events));
    on_chat_stream(context, request, stream);
    return stream;
  }
  std::shared_ptr<ClientCall> CompleteStream(
      const CallContext& context, parser::v1::CompleteStreamRequest request,
      ClientStreamEvents<parser::v1::CompleteStreamResponse> events) override {
    auto stream = std::make_shared<CompleteStreamFake>(std::move(events));
    on_complete_stream(context, request, stream);
    return stream;
  }
  std::shared_ptr<ClientCall> ParseReasoning(
      const CallContext&, parser::v1::ParseReasoningRequest request,
      UnaryDone<parser::v1::ParseReasoningResponse> done) override {
    done(on_parse_reasoning(request));
    return std::make_shared<Pending>();
  }
  std::shared_ptr<ClientCall> ParseToolCalls(
      const CallContext&, parser::v1::ParseToolCallsRequest request,
      UnaryDone<parser::v1::ParseToolCallsResponse> done) override {
    done(on_parse_tool_calls(request));
    return std::make_shared<Pending>();
  }
  std::shared_ptr<ClientCall> GetModelInfo(
      const CallContext&, UnaryDone<parser::v1::GetModelInfoResponse> done) override {
    done(on_get_model_info());
    return std::make_shared<Pending>();
  }
  std::unique_ptr<HealthWatch> Watch(HealthChanged changed) override {
    return health.Watch(std::move(changed));
  }
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_CLIENTS_FAKE_PARSER_CLIENT_H_

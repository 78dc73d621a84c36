// The parser service over a scripted tokenizer, through real gRPC.

#include "services/parser/parser_service.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "services/clients/channel.h"
#include "services/clients/fake_tokenizer_client.h"
#include "services/common/field_error.h"
#include "services/common/metrics.h"
#include "services/common/status_map.h"

namespace tessera::parser {
namespace {

using TokenizerStream = services::FakeTokenizerClient::GenerateStream;

constexpr std::chrono::seconds kSeconds{20};
constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr char kThinkTemplate[] = "<think></think> <tool_call> <function= <parameter= ";
constexpr char kWeather[] =
    R"({"type":"function","function":{"name":"weather","parameters":{"type":"object",)"
    R"("properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}})";

tokenizer::v1::GenerateResponse Started() {
  tokenizer::v1::GenerateResponse event;
  event.mutable_started()->set_request_id("r1");
  event.mutable_started()->set_model("demo");
  event.mutable_started()->set_prompt_tokens(7);
  return event;
}

// One token a piece.
tokenizer::v1::GenerateResponse Piece(const std::string& text, uint32_t choice = 0) {
  tokenizer::v1::GenerateResponse event;
  event.mutable_delta()->set_choice_index(choice);
  event.mutable_delta()->set_text(text);
  tokenizer::v1::TextToken* const token = event.mutable_delta()->add_tokens();
  token->set_text_bytes(text.size());
  token->set_logprob(-0.5f);
  return event;
}

tokenizer::v1::GenerateResponse End(engine::v1::FinishReason reason, uint32_t choice = 0) {
  tokenizer::v1::GenerateResponse event = Piece("", choice);
  event.mutable_delta()->mutable_end()->set_choice_index(choice);
  event.mutable_delta()->mutable_end()->set_reason(reason);
  return event;
}

tokenizer::v1::GenerateResponse Finished() {
  tokenizer::v1::GenerateResponse event;
  event.mutable_finished()->mutable_usage()->set_prompt_tokens(7);
  return event;
}

// What a stream came to.
struct Joined {
  std::string order;  // s(tarted) d(elta) f(inished)
  std::string reasoning, content, arguments, name;
  int calls = 0;
  size_t logprobs = 0;
  v1::FinishReason finish_reason = v1::FINISH_REASON_UNSPECIFIED;
  v1::Usage usage;
  absl::Status status = absl::UnknownError("not over");
};

class ParserServiceTest : public testing::Test {
 protected:
  ParserServiceTest()
      : log_({.service = "parser", .sink = [](std::string_view) {}}), metrics_(registry_) {
    tokenizer_.on_get_model_info = [] {
      tokenizer::v1::GetModelInfoResponse info;
      info.set_chat_template(kThinkTemplate);
      info.set_default_chat_template_kwargs_json("{}");
      return info;
    };
    service_ = std::make_unique<ParserService>(FormatFlags{}, tokenizer_, log_, ids_,
                                               services::RealClock(), metrics_, [](bool) {});
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::ParserService::NewStub(*services::MakeChannel("127.0.0.1:" + std::to_string(port)));
  }
  ~ParserServiceTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  // Scripts the tokenizer's answer.
  void Answer(std::vector<tokenizer::v1::GenerateResponse> events,
              absl::Status status = absl::OkStatus()) {
    tokenizer_.on_generate = [this, events, status](const auto&, const auto& request, auto stream) {
      asked_ = request;
      for (const auto& event : events) stream->Send(event);
      stream->Finish(status);
    };
  }
  void AnswerText(const std::vector<std::string>& pieces) {
    std::vector<tokenizer::v1::GenerateResponse> events = {Started()};
    for (const std::string& piece : pieces) events.push_back(Piece(piece));
    events.push_back(End(engine::v1::FINISH_REASON_STOP));
    events.push_back(Finished());
    Answer(std::move(events));
  }

  static v1::ChatOptions Options() {
    v1::ChatOptions options;
    tokenizer::v1::Message* const message = options.mutable_chat()->add_messages();
    message->set_role("user");
    message->set_text("Hi");
    return options;
  }

  Joined Stream(const v1::ChatOptions& options) {
    v1::ChatStreamRequest request;
    *request.mutable_options() = options;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kSeconds);
    Joined joined;
    v1::ChatStreamResponse event;
    const auto reader = stub_->ChatStream(&context, request);
    while (reader->Read(&event)) Add(event, joined);
    joined.status = services::FromGrpcStatus(reader->Finish());
    return joined;
  }

  absl::StatusOr<v1::ChatResponse> Whole(const v1::ChatOptions& options) {
    v1::ChatRequest request;
    *request.mutable_options() = options;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kSeconds);
    v1::ChatResponse response;
    const grpc::Status status = stub_->Chat(&context, request, &response);
    if (!status.ok()) return services::FromGrpcStatus(status);
    return response;
  }

  static void Add(const v1::ChatStreamResponse& event, Joined& joined) {
    if (event.has_started()) joined.order += 's';
    if (event.has_finished()) {
      joined.order += 'f';
      joined.usage = event.finished().usage();
    }
    if (!event.has_delta()) return;
    if (joined.order.back() != 'd') joined.order += 'd';
    const v1::ChatDelta& delta = event.delta();
    joined.reasoning += delta.reasoning();
    joined.content += delta.content();
    joined.logprobs += delta.logprobs_size();
    for (const v1::ToolCallDelta& call : delta.tool_calls()) {
      if (call.has_name()) {
        ++joined.calls;
        joined.name += call.name();
        EXPECT_FALSE(call.id().empty());
      }
      joined.arguments += call.arguments_fragment();
    }
    if (delta.has_end()) joined.finish_reason = delta.end().finish_reason();
  }

  services::FakeTokenizerClient tokenizer_;
  tokenizer::v1::GenerateRequest asked_;
  services::Logger log_;
  services::RequestIds ids_{1};
  prometheus::Registry registry_;
  ParserMetrics metrics_;
  std::unique_ptr<ParserService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::ParserService::Stub> stub_;
};

TEST_F(ParserServiceTest, SplitsReasoningFromContentAndCountsItsTokens) {
  AnswerText({"Add", " them.", "\n</think>", "\n\n", "Twelve."});
  const Joined joined = Stream(Options());
  EXPECT_TRUE(joined.status.ok()) << joined.status;
  EXPECT_EQ(joined.order, "sdf");
  EXPECT_EQ(joined.reasoning, "Add them.");
  EXPECT_EQ(joined.content, "\n\nTwelve.");
  EXPECT_EQ(joined.finish_reason, v1::FINISH_REASON_STOP);
  EXPECT_EQ(joined.usage.completion_tokens(), 6u);
  EXPECT_EQ(joined.usage.reasoning_tokens(), 3u);
  EXPECT_EQ(joined.usage.prompt_tokens(), 7u);
}

TEST_F(ParserServiceTest, AnySplitOfTheTextGivesTheSameAndWholeIsTheSameToo) {
  const std::string text =
      "I call it.\n</think>\nOne "
      "moment.\n<tool_call>\n<function=weather>\n<parameter=city>\nBod\xC3"
      "\xB8\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>";
  v1::ChatOptions options = Options();
  options.mutable_chat()->add_tools()->set_definition_json(kWeather);
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::string> pieces;
    for (size_t begin = 0; begin < text.size();) {
      // The tokenizer sends whole code points.
      size_t end = std::min(text.size(), begin + 1 + random() % (round + 1));
      while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;
      pieces.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    AnswerText(pieces);
    const Joined joined = Stream(options);
    ASSERT_TRUE(joined.status.ok()) << joined.status;
    EXPECT_EQ(joined.reasoning, "I call it.");
    EXPECT_EQ(joined.content, "\nOne moment.");
    EXPECT_EQ(joined.calls, 1);
    EXPECT_EQ(joined.name, "weather");
    EXPECT_EQ(nlohmann::json::parse(joined.arguments),
              nlohmann::json({{"city", "Bod\xC3\xB8"}, {"days", 3}}));
    EXPECT_EQ(joined.finish_reason, v1::FINISH_REASON_TOOL_CALLS);

    const absl::StatusOr<v1::ChatResponse> whole = Whole(options);
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_EQ(whole->choices(0).reasoning(), joined.reasoning);
    EXPECT_EQ(whole->choices(0).content(), joined.content);
    EXPECT_EQ(whole->choices(0).tool_calls(0).arguments_json(), joined.arguments);
    EXPECT_EQ(whole->choices(0).finish_reason(), joined.finish_reason);
    EXPECT_EQ(whole->usage().reasoning_tokens(), joined.usage.reasoning_tokens());
  }
}

TEST_F(ParserServiceTest, TemplateVariablesOfTheRequestWinOverEffort) {
  AnswerText({"Hello"});
  v1::ChatOptions options = Options();
  options.set_reasoning_effort("none");
  EXPECT_EQ(Stream(options).content, "Hello");
  EXPECT_EQ(asked_.chat().chat_template_kwargs_json(), R"({"enable_thinking":false})");

  options.mutable_chat()->set_chat_template_kwargs_json(R"({"enable_thinking":true})");
  AnswerText({"Hello</think>there"});
  EXPECT_EQ(Stream(options).reasoning, "Hello");

  options.set_reasoning_effort("low");
  options.mutable_chat()->clear_chat_template_kwargs_json();
  Stream(options);
  EXPECT_EQ(asked_.chat().chat_template_kwargs_json(), R"({"low_effort":true})");
}

TEST_F(ParserServiceTest, BadRequestsNameTheirField) {
  AnswerText({"never asked"});
  const auto field_of = [&](const v1::ChatOptions& options) {
    const absl::StatusOr<v1::ChatResponse> answer = Whole(options);
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument) << answer.status();
    return services::FieldOf(answer.status()).value_or("none");
  };
  EXPECT_EQ(field_of({}), "messages");
  v1::ChatOptions options = Options();
  options.mutable_chat()->add_tools()->set_definition_json("{");
  EXPECT_EQ(field_of(options), "tools[0]");
  options.mutable_chat()->mutable_tools(0)->set_definition_json(R"({"function":{"name":""}})");
  EXPECT_EQ(field_of(options), "tools[0].function.name");
  options = Options();
  options.mutable_chat()->set_chat_template_kwargs_json("[1]");
  EXPECT_EQ(field_of(options), "chat_template_kwargs");
  options.mutable_chat()->set_chat_template_kwargs_json(std::string(100000, '['));
  EXPECT_EQ(field_of(options), "chat_template_kwargs");
  options = Options();
  options.set_reasoning_effort("extreme");
  EXPECT_EQ(field_of(options), "reasoning_effort");
  options = Options();
  options.mutable_tool_choice()->set_mode(v1::TOOL_CHOICE_MODE_FUNCTION);
  options.mutable_tool_choice()->set_function_name("nope");
  EXPECT_EQ(field_of(options).substr(0, 11), "tool_choice");
  options = Options();
  options.mutable_sampling()->set_n(17);
  EXPECT_EQ(field_of(options), "n");
}

TEST_F(ParserServiceTest, ALostTokenizerIsUnavailableBeforeAndAbortedAfterTheFirstText) {
  Answer({Started()}, absl::UnavailableError("connection reset"));
  EXPECT_EQ(Stream(Options()).status.code(), absl::StatusCode::kUnavailable);
  Answer({Started(), Piece(" \n")}, absl::UnavailableError("connection reset"));
  EXPECT_EQ(Stream(Options()).status.code(),
            absl::StatusCode::kUnavailable);  // held back
  Answer({Started(), Piece("Hello you")}, absl::UnavailableError("connection reset"));
  EXPECT_EQ(Stream(Options()).status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Whole(Options()).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ParserServiceTest, ABrokenProtocolBelowIsInternal) {
  Answer({Piece("x")});
  EXPECT_EQ(Stream(Options()).status.code(), absl::StatusCode::kInternal);
  Answer({Started()});
  EXPECT_EQ(Stream(Options()).status.code(), absl::StatusCode::kInternal);
  Answer({Started(), Piece("x", 3)});
  EXPECT_EQ(Whole(Options()).status().code(), absl::StatusCode::kInternal);
}

TEST_F(ParserServiceTest, ACallerWhoGoesAwayCancelsBelow) {
  std::shared_ptr<TokenizerStream> below;
  absl::Notification asked;
  tokenizer_.on_generate = [&](const auto&, const auto&, auto stream) {
    below = stream;
    stream->Send(Started());
    asked.Notify();
  };
  v1::ChatStreamRequest request;
  *request.mutable_options() = Options();
  grpc::ClientContext context;
  const auto reader = stub_->ChatStream(&context, request);
  ASSERT_TRUE(asked.WaitForNotificationWithTimeout(kPatience));
  context.TryCancel();
  EXPECT_TRUE(below->AwaitCancelled(kPatience));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ParserServiceTest, OneCallOnlyEndsTheGenerationWithIt) {
  v1::ChatOptions options = Options();
  options.mutable_chat()->add_tools()->set_definition_json(kWeather);
  options.set_parallel_tool_calls(false);
  std::shared_ptr<TokenizerStream> below;
  tokenizer_.on_generate = [&](const auto&, const auto&, auto stream) {
    below = stream;
    stream->Send(Started());
    stream->Send(Piece("</think><tool_call>\n<function=weather>\n</function>\n</tool_call>"));
    stream->Send(Piece("\n<tool_call>\n<function=weather>\n</function>\n</tool_call>"));
  };
  const Joined joined = Stream(options);
  EXPECT_TRUE(joined.status.ok()) << joined.status;
  EXPECT_EQ(joined.calls, 1);
  EXPECT_EQ(joined.order, "sdf");
  EXPECT_EQ(joined.finish_reason, v1::FINISH_REASON_TOOL_CALLS);
  EXPECT_TRUE(below->AwaitCancelled(kPatience));
}

TEST_F(ParserServiceTest, TheFinishReasonFollowsTheTableStreamedAndWhole) {
  constexpr char kCall[] = "</think>\n<tool_call>\n<function=weather>\n</function>\n</tool_call>";
  struct Row {
    engine::v1::FinishReason engine;
    const char* text;
    v1::ToolChoiceMode mode;
    v1::FinishReason expected;
  };
  const Row rows[] = {
      {engine::v1::FINISH_REASON_LENGTH, "hm", v1::TOOL_CHOICE_MODE_AUTO, v1::FINISH_REASON_LENGTH},
      {engine::v1::FINISH_REASON_LENGTH, kCall, v1::TOOL_CHOICE_MODE_AUTO,
       v1::FINISH_REASON_LENGTH},
      {engine::v1::FINISH_REASON_STOP, "hm</think>Yes.", v1::TOOL_CHOICE_MODE_AUTO,
       v1::FINISH_REASON_STOP},
      {engine::v1::FINISH_REASON_STOP, kCall, v1::TOOL_CHOICE_MODE_UNSPECIFIED,
       v1::FINISH_REASON_TOOL_CALLS},
      {engine::v1::FINISH_REASON_STOP, kCall, v1::TOOL_CHOICE_MODE_AUTO,
       v1::FINISH_REASON_TOOL_CALLS},
      {engine::v1::FINISH_REASON_STOP, kCall, v1::TOOL_CHOICE_MODE_REQUIRED,
       v1::FINISH_REASON_TOOL_CALLS},
      {engine::v1::FINISH_REASON_STOP, kCall, v1::TOOL_CHOICE_MODE_FUNCTION,
       v1::FINISH_REASON_STOP},
      {engine::v1::FINISH_REASON_STOP, kCall, v1::TOOL_CHOICE_MODE_NONE, v1::FINISH_REASON_STOP},
      {engine::v1::FINISH_REASON_ABORT, kCall, v1::TOOL_CHOICE_MODE_AUTO, v1::FINISH_REASON_ABORT},
  };
  for (const Row& row : rows) {
    v1::ChatOptions options = Options();
    options.mutable_chat()->add_tools()->set_definition_json(kWeather);
    options.mutable_tool_choice()->set_mode(row.mode);
    if (row.mode == v1::TOOL_CHOICE_MODE_FUNCTION) {
      options.mutable_tool_choice()->set_function_name("weather");
    }
    Answer({Started(), Piece(row.text), End(row.engine), Finished()});
    EXPECT_EQ(Stream(options).finish_reason, row.expected) << row.text << " " << row.mode;
    const absl::StatusOr<v1::ChatResponse> whole = Whole(options);
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_EQ(whole->choices(0).finish_reason(), row.expected) << row.text << " " << row.mode;
    const bool calls = row.mode != v1::TOOL_CHOICE_MODE_NONE && row.text == kCall;
    EXPECT_EQ(whole->choices(0).tool_calls_size(), calls ? 1 : 0);
  }
}

TEST_F(ParserServiceTest, ParseReasoningSplitsGivenText) {
  const auto parse = [&](v1::ParseReasoningRequest request) {
    grpc::ClientContext context;
    v1::ParseReasoningResponse response;
    const grpc::Status status = stub_->ParseReasoning(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  v1::ParseReasoningRequest request;
  request.set_text("Hm.\n</think>Three.");
  EXPECT_EQ(parse(request).reasoning(), "Hm.");
  EXPECT_EQ(parse(request).content(), "Three.");
  request.set_enable_thinking(false);
  EXPECT_FALSE(parse(request).has_reasoning());
  EXPECT_EQ(parse(request).content(), "Hm.\nThree.");
  request.set_format("none");
  EXPECT_EQ(parse(request).content(), request.text());
  request.set_format("r2d2");
  grpc::ClientContext context;
  v1::ParseReasoningResponse response;
  const absl::Status status =
      services::FromGrpcStatus(stub_->ParseReasoning(&context, request, &response));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(services::FieldOf(status).value_or("none"), "format");
}

TEST_F(ParserServiceTest, ParseToolCallsFindsCallsAndCountsWhatWasRepaired) {
  v1::ParseToolCallsRequest request;
  request.set_text("So:\n<tool_call>\n<function=weather>\n<parameter=days>\na few");
  request.add_tools()->set_definition_json(kWeather);
  grpc::ClientContext context;
  v1::ParseToolCallsResponse response;
  const grpc::Status status = stub_->ParseToolCalls(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.content(), "So:");
  ASSERT_EQ(response.tool_calls_size(), 1);
  EXPECT_EQ(response.tool_calls(0).name(), "weather");
  EXPECT_EQ(response.tool_calls(0).arguments_json(), R"({"days": "a few"})");
  EXPECT_FALSE(response.tool_calls(0).id().empty());
  const std::string metrics = services::MetricsText(registry_);
  for (const char* kind : {"raw_string", "malformed_call"}) {
    EXPECT_NE(metrics.find("tessera_parser_fallbacks_total{kind=\"" + std::string(kind) + "\"} 1"),
              std::string::npos)
        << metrics;
  }
  EXPECT_NE(metrics.find("method=\"ParseToolCalls\""), std::string::npos);
}

TEST_F(ParserServiceTest, LogprobsHaveOneEntryATokenUnlessReasoningIsWithheld) {
  AnswerText({"Add", " them.", "</think>", "Twelve", "."});
  v1::ChatOptions options = Options();
  options.mutable_sampling()->set_logprobs(0);
  EXPECT_EQ(Stream(options).logprobs, 6u);
  EXPECT_EQ(Whole(options)->choices(0).logprobs_size(), 6);
  options.set_include_reasoning(false);
  const Joined joined = Stream(options);
  EXPECT_EQ(joined.reasoning, "");
  EXPECT_EQ(joined.content, "Twelve.");
  EXPECT_EQ(joined.logprobs, 4u);
  EXPECT_EQ(Whole(options)->choices(0).logprobs_size(), 4);
  EXPECT_FALSE(Whole(options)->choices(0).has_reasoning());
}

TEST_F(ParserServiceTest, ChoicesAreParsedApart) {
  Answer({Started(), Piece("a</think>", 1), Piece("b</think>x", 0), Piece("y", 1),
          End(engine::v1::FINISH_REASON_LENGTH, 1), End(engine::v1::FINISH_REASON_STOP, 0),
          Finished()});
  v1::ChatOptions options = Options();
  options.mutable_sampling()->set_n(2);
  const absl::StatusOr<v1::ChatResponse> whole = Whole(options);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->choices(0).reasoning(), "b");
  EXPECT_EQ(whole->choices(0).content(), "x");
  EXPECT_EQ(whole->choices(0).finish_reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(whole->choices(1).reasoning(), "a");
  EXPECT_EQ(whole->choices(1).content(), "y");
  EXPECT_EQ(whole->choices(1).finish_reason(), v1::FINISH_REASON_LENGTH);
}

}  // namespace
}  // namespace tessera::parser

// The service over a real connection, with a scripted engine below.

#include "services/tokenizer/tokenizer_service.h"

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "services/clients/channel.h"
#include "services/clients/fake_engine_client.h"
#include "services/common/field_error.h"
#include "services/common/metrics.h"
#include "services/common/status_map.h"
#include "services/common/stream/client_stream.h"
#include "services/tokenizer/demo_text_model.h"

namespace tessera::services {
namespace {

using tokenizer::v1::GenerateRequest;
using tokenizer::v1::GenerateResponse;
using EngineStream = FakeEngineClient::GenerateStream;

constexpr absl::Duration kPatience = absl::Seconds(20);

engine::v1::GenerateResponse Started(uint32_t prompt_tokens) {
  engine::v1::GenerateResponse response;
  response.mutable_started()->set_request_id("engine-id");
  response.mutable_started()->set_model("demo");
  response.mutable_started()->set_prompt_tokens(prompt_tokens);
  return response;
}

engine::v1::GenerateResponse Tokens(const std::vector<uint32_t>& ids, uint32_t choice = 0) {
  engine::v1::GenerateResponse response;
  response.mutable_delta()->set_choice_index(choice);
  for (const uint32_t id : ids) response.mutable_delta()->add_tokens()->set_id(id);
  return response;
}

engine::v1::GenerateResponse End(engine::v1::FinishReason reason, uint32_t choice = 0) {
  engine::v1::GenerateResponse response;
  response.mutable_delta()->set_choice_index(choice);
  response.mutable_delta()->mutable_end()->set_choice_index(choice);
  response.mutable_delta()->mutable_end()->set_reason(reason);
  return response;
}

engine::v1::GenerateResponse Finished(uint32_t prompt_tokens, uint32_t cached) {
  engine::v1::GenerateResponse response;
  response.mutable_finished()->mutable_usage()->set_prompt_tokens(prompt_tokens);
  response.mutable_finished()->mutable_usage()->set_cached_prompt_tokens(cached);
  return response;
}

std::vector<uint32_t> Ids(std::string_view text) {
  return *DemoTextModel()->tokenizer->Encode(text);
}

// What a blocking client got from a Generate call.
struct Got {
  int started = 0;
  int finished = 0;
  std::vector<std::string> texts = std::vector<std::string>(16);
  std::vector<std::vector<uint32_t>> ids = std::vector<std::vector<uint32_t>>(16);
  std::vector<tokenizer::v1::ChoiceEnd> ends;
  tokenizer::v1::GenerateFinished last;
  absl::Status status;
};

class TokenizerServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    engine_.on_get_model_info = [] {
      engine::v1::GetModelInfoResponse info;
      info.set_model("demo");
      info.set_context_tokens_max(65536);
      return info;
    };
    service_ = std::make_unique<TokenizerService>(
        TokenizerService::Parts{.engine = engine_,
                                .log = log_,
                                .clock = RealClock(),
                                .request_ids = ids_,
                                .registry = registry_,
                                .pool_threads = 2,
                                .on_serving = [this](bool serving) { serving_ = serving; }});
    int port = 0;
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(32 << 20);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ =
        tokenizer::v1::TokenizerService::NewStub(*MakeChannel("127.0.0.1:" + std::to_string(port)));
    if (load_model_) service_->SetModel(DemoTextModel(), {});
  }
  void TearDown() override { server_->Shutdown(std::chrono::system_clock::now()); }

  static GenerateRequest Chat(const std::string& text) {
    GenerateRequest request;
    auto& message = *request.mutable_chat()->add_messages();
    message.set_role("user");
    message.set_text(text);
    return request;
  }

  Got Call(const GenerateRequest& request, grpc::ClientContext* context = nullptr) {
    grpc::ClientContext own;
    if (context == nullptr) context = &own;
    auto reader = stub_->Generate(context, request);
    Got got;
    GenerateResponse response;
    while (reader->Read(&response)) Take(response, got);
    got.status = FromGrpcStatus(reader->Finish());
    return got;
  }

  static void Take(const GenerateResponse& response, Got& got) {
    EXPECT_EQ(got.finished, 0) << "nothing may follow finished";
    if (response.has_started()) {
      EXPECT_EQ(got.started++, 0);
    } else if (response.has_delta()) {
      EXPECT_EQ(got.started, 1);
      const auto& delta = response.delta();
      got.texts[delta.choice_index()] += delta.text();
      for (const auto& token : delta.tokens()) got.ids[delta.choice_index()].push_back(token.id());
      if (delta.has_end()) got.ends.push_back(delta.end());
    } else {
      ++got.finished;
      got.last = response.finished();
    }
  }

  bool load_model_ = true;
  FakeEngineClient engine_;
  Logger log_{{.service = "test", .level = LogLevel::kOff}};
  RequestIds ids_{1};
  prometheus::Registry registry_;
  std::atomic<bool> serving_ = false;
  std::unique_ptr<TokenizerService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<tokenizer::v1::TokenizerService::Stub> stub_;
};

TEST_F(TokenizerServiceTest, AConversationBecomesIdsBelowAndTextAbove) {
  engine::v1::GenerateRequest below;
  CallContext context_below;
  engine_.on_generate = [&](const CallContext& context, const auto& request, auto stream) {
    context_below = context;
    below = request;
    stream->Send(Started(request.prompt().ids_size()));
    for (const uint32_t id : Ids("I think</think>The answer is 42 🌊.<|im_end|>")) {
      stream->Send(Tokens({id}));
    }
    stream->Send(End(engine::v1::FINISH_REASON_STOP));
    stream->Send(Finished(request.prompt().ids_size(), 3));
    stream->Finish(absl::OkStatus());
  };
  GenerateRequest request = Chat("What is it?");
  request.mutable_sampling()->set_temperature(0);
  request.set_priority(5);
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "from-above");
  context.AddMetadata("authorization", "Bearer t");
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const Got got = Call(request, &context);
  ASSERT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.texts[0], "I think</think>The answer is 42 🌊.");
  EXPECT_EQ(got.ids[0], Ids("I think</think>The answer is 42 🌊.<|im_end|>"));
  EXPECT_EQ(got.finished, 1);
  EXPECT_EQ(got.last.usage().cached_prompt_tokens(), 3u);
  EXPECT_EQ(got.last.usage().completion_tokens(), got.ids[0].size());
  EXPECT_EQ(got.last.choices(0).reason(), engine::v1::FINISH_REASON_STOP);
  EXPECT_TRUE(below.sampling().has_temperature());
  EXPECT_EQ(below.priority(), 5);
  EXPECT_EQ(below.prompt().ids(0), 10u);
  EXPECT_EQ(context_below.request_id, "from-above");
  EXPECT_EQ(context_below.authorization, "Bearer t");
  EXPECT_LT(context_below.Remaining(), absl::Seconds(31));
  EXPECT_EQ(context.GetServerInitialMetadata().find("x-request-id")->second, "from-above");
}

TEST_F(TokenizerServiceTest, HowTheEngineCutsItsDeltasChangesNothing) {
  std::mt19937 random(5);
  const std::vector<uint32_t> ids = Ids("Bodø 你好 🌊 </think> and STOP here");
  for (int round = 0; round < 30; ++round) {
    engine_.on_generate = [&](const auto&, const auto&, auto stream) {
      stream->Send(Started(1));
      size_t next = 0;
      while (next < ids.size()) {
        const size_t size = std::min<size_t>(1 + random() % 5, ids.size() - next);
        stream->Send(Tokens({ids.begin() + next, ids.begin() + next + size}));
        next += size;
      }
      stream->Send(End(engine::v1::FINISH_REASON_LENGTH));
      stream->Send(Finished(1, 0));
      stream->Finish(absl::OkStatus());
    };
    GenerateRequest request = Chat("x");
    if (round % 2 == 0) request.add_stop("STOP");
    const Got got = Call(request);
    ASSERT_TRUE(got.status.ok()) << got.status;
    EXPECT_EQ(got.texts[0],
              round % 2 == 0 ? "Bodø 你好 🌊 </think> and " : "Bodø 你好 🌊 </think> and STOP here");
  }
}

TEST_F(TokenizerServiceTest, AStopStringEndsTheCallAndCancelsTheEngine) {
  std::shared_ptr<EngineStream> below;
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    below = stream;
    stream->Send(Started(7));
    for (const uint32_t id : Ids("one two three four")) stream->Send(Tokens({id}));
    // Never ends by itself.
  };
  GenerateRequest request = Chat("x");
  request.add_stop("three");
  const Got got = Call(request);
  ASSERT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.texts[0], "one two ");
  ASSERT_EQ(got.finished, 1);
  EXPECT_EQ(got.last.choices(0).stop_string(), "three");
  EXPECT_EQ(got.last.choices(0).reason(), engine::v1::FINISH_REASON_STOP);
  EXPECT_EQ(got.last.usage().prompt_tokens(), 7u);
  EXPECT_EQ(got.last.usage().completion_tokens(), got.ids[0].size());
  EXPECT_TRUE(below->AwaitCancelled(kPatience));
}

TEST_F(TokenizerServiceTest, EachOfSeveralChoicesHasItsOwnDecoderAndStop) {
  std::shared_ptr<EngineStream> below;
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    below = stream;
    stream->Send(Started(1));
    const std::vector<uint32_t> a = Ids("你好 stop 多");
    const std::vector<uint32_t> b = Ids("second 🌊 text");
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      if (i < a.size()) stream->Send(Tokens({a[i]}, 0));
      if (i < b.size()) stream->Send(Tokens({b[i]}, 1));
    }
    EXPECT_FALSE(stream->cancelled());  // the second still runs
    stream->Send(End(engine::v1::FINISH_REASON_LENGTH, 1));
  };
  GenerateRequest request = Chat("x");
  request.mutable_sampling()->set_n(2);
  request.add_stop("stop");
  const Got got = Call(request);
  ASSERT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.texts[0], "你好 ");
  EXPECT_EQ(got.texts[1], "second 🌊 text");
  EXPECT_EQ(got.last.choices_size(), 2);
  EXPECT_EQ(got.last.choices(0).stop_string(), "stop");
  EXPECT_EQ(got.last.choices(1).reason(), engine::v1::FINISH_REASON_LENGTH);
  EXPECT_TRUE(below->cancelled());
}

TEST_F(TokenizerServiceTest, TextPromptsDropSpecialTokensUnlessTold) {
  engine_.on_generate = [&](const auto&, const auto& request, auto stream) {
    EXPECT_EQ(request.prompt().ids(0), 1u);  // <s>
    stream->Send(Started(2));
    stream->Send(Tokens(Ids("a</think>b<|im_end|>")));
    stream->Send(End(engine::v1::FINISH_REASON_STOP));
    stream->Send(Finished(2, 0));
    stream->Finish(absl::OkStatus());
  };
  GenerateRequest request;
  request.set_text("hello");
  EXPECT_EQ(Call(request).texts[0], "ab");
  request.set_skip_special_tokens(false);
  EXPECT_EQ(Call(request).texts[0], "a</think>b");
  request.set_include_stop_str_in_output(true);
  EXPECT_EQ(Call(request).texts[0], "a</think>b<|im_end|>");
  request.set_echo(true);
  EXPECT_EQ(Call(request).texts[0], "helloa</think>b<|im_end|>");
  GenerateRequest chat = Chat("x");
  chat.set_echo(true);
  EXPECT_EQ(FieldOf(Call(chat).status), "echo");
}

TEST_F(TokenizerServiceTest, TheEnginesDeathIsUnavailableBeforeAndAbortedAfterTheFirstText) {
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    stream->Finish(absl::UnavailableError("Socket closed"));
  };
  EXPECT_EQ(Call(Chat("x")).status.code(), absl::StatusCode::kUnavailable);
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    stream->Send(Started(1));
    stream->Finish(absl::UnavailableError("Socket closed"));
  };
  EXPECT_EQ(Call(Chat("x")).status.code(), absl::StatusCode::kUnavailable);
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    stream->Send(Started(1));
    stream->Send(Tokens(Ids("text")));
    stream->Finish(absl::UnavailableError("Socket closed"));
  };
  const Got got = Call(Chat("x"));
  EXPECT_EQ(got.status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(got.texts[0], "text");
  EXPECT_NE(MetricsText(registry_).find("tessera_tokenizer_upstream_errors_total"),
            std::string::npos);
}

TEST_F(TokenizerServiceTest, EngineErrorsPassWithTheirField) {
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    stream->Finish(InvalidField("max_tokens", "is 0; give at least 1"));
  };
  const Got got = Call(Chat("x"));
  EXPECT_EQ(got.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(got.status), "max_tokens");
}

TEST_F(TokenizerServiceTest, ABrokenEngineIsInternal) {
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    stream->Send(Started(1));
    stream->Finish(absl::OkStatus());
  };
  EXPECT_EQ(Call(Chat("x")).status.code(), absl::StatusCode::kInternal);
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    stream->Send(Started(1));
    stream->Send(Tokens({20}, 5));
  };
  EXPECT_EQ(Call(Chat("x")).status.code(), absl::StatusCode::kInternal);
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    stream->Send(Started(1));
    stream->Send(Finished(1, 0));
  };
  EXPECT_EQ(Call(Chat("x")).status.code(), absl::StatusCode::kInternal);
}

TEST_F(TokenizerServiceTest, ACallerThatGoesCancelsTheEngine) {
  absl::Notification started;
  std::shared_ptr<EngineStream> below;
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    below = stream;
    stream->Send(Started(1));
    stream->Send(Tokens(Ids("text")));
    started.Notify();
  };
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, Chat("x"));
  ASSERT_TRUE(started.WaitForNotificationWithTimeout(kPatience));
  context.TryCancel();
  EXPECT_TRUE(below->AwaitCancelled(kPatience));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(TokenizerServiceTest, ACancellationStormLeavesNothingOpen) {
  constexpr int kStreams = 300;
  absl::Mutex mutex;
  std::vector<std::shared_ptr<EngineStream>> below;
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    stream->Send(Started(1));
    absl::MutexLock lock(&mutex);
    below.push_back(stream);
  };
  std::atomic<bool> stop = false;
  std::thread engine_thread([&] {
    const std::vector<uint32_t> ids = Ids("some text 🌊 to send");
    for (size_t i = 0; !stop; ++i) {
      std::vector<std::shared_ptr<EngineStream>> now;
      {
        absl::MutexLock lock(&mutex);
        now = below;
      }
      for (const auto& stream : now) stream->Send(Tokens({ids[i % ids.size()]}));
      absl::SleepFor(absl::Milliseconds(1));
    }
  });
  std::atomic<int> done = 0;
  std::atomic<int> wrong = 0;
  std::mt19937 random(9);
  std::vector<std::shared_ptr<PendingCall>> calls;
  for (int i = 0; i < kStreams; ++i) {
    auto call = std::make_shared<PendingCall>();
    calls.push_back(call);
    const int cancel_after = static_cast<int>(random() % 8);
    auto seen = std::make_shared<int>(0);
    call->Set(ClientStream<GenerateRequest, GenerateResponse>::Start(
        {}, Chat("x"),
        {.on_message =
             [call, cancel_after, seen](GenerateResponse&) {
               if (++*seen > cancel_after) call->Cancel();
               return Flow::kContinue;
             },
         .on_done =
             [&](const absl::Status& status) {
               if (status.code() != absl::StatusCode::kCancelled) ++wrong;
               ++done;
             }},
        [this](auto* c, auto* q, auto* r) { stub_->async()->Generate(c, q, r); }));
    if (cancel_after == 0) call->Cancel();
  }
  const absl::Time end = absl::Now() + kPatience;
  const auto all_ended = [&] {
    return done == kStreams && service_->metrics().streams_open.Value() == 0;
  };
  while (!all_ended() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(5));
  stop = true;
  engine_thread.join();
  EXPECT_EQ(done, kStreams);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(service_->metrics().streams_open.Value(), 0);
  for (const auto& stream : below) EXPECT_TRUE(stream->AwaitCancelled(kPatience));
}

TEST_F(TokenizerServiceTest, ASlowReaderPausesTheEngineAndGetsEverything) {
  std::shared_ptr<EngineStream> below;
  absl::Notification all_sent;
  std::string want;
  std::vector<uint32_t> ids;
  for (int i = 0; i < 40'000; ++i) {
    for (const uint32_t id : Ids("word" + std::to_string(i) + " ")) ids.push_back(id);
    want += "word" + std::to_string(i) + " ";
  }
  engine_.on_generate = [&](const auto&, const auto&, auto stream) {
    below = stream;
    stream->Send(Started(1));
    for (const uint32_t id : ids) stream->Send(Tokens({id}));
    stream->Send(End(engine::v1::FINISH_REASON_LENGTH));
    stream->Send(Finished(1, 0));
    stream->Finish(absl::OkStatus());
    all_sent.Notify();
  };
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, Chat("x"));
  ASSERT_TRUE(all_sent.WaitForNotificationWithTimeout(kPatience));
  ASSERT_TRUE(below->AwaitPaused(kPatience));
  Got got;
  GenerateResponse response;
  while (reader->Read(&response)) Take(response, got);
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(got.texts[0], want);
  EXPECT_EQ(got.ids[0], ids);
}

TEST_F(TokenizerServiceTest, ATenMegabytePromptIsOneClearErrorThatNamesTheField) {
  const Got got = Call(Chat(std::string(10 << 20, 'a')));
  EXPECT_EQ(got.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(got.status), "messages[0].content");
  EXPECT_NE(got.status.message().find("8388608"), std::string::npos);
}

TEST_F(TokenizerServiceTest, ALongPromptIsBuiltOnThePool) {
  engine_.on_generate = [&](const auto&, const auto& request, auto stream) {
    stream->Send(Started(request.prompt().ids_size()));
    stream->Send(End(engine::v1::FINISH_REASON_LENGTH));
    stream->Send(Finished(request.prompt().ids_size(), 0));
    stream->Finish(absl::OkStatus());
  };
  std::string text;
  while (text.size() < 2 * kInlineBytesMax) text += "some words ";
  const Got got = Call(Chat(text));
  ASSERT_TRUE(got.status.ok()) << got.status;
  EXPECT_GT(got.last.usage().prompt_tokens(), 1000u);
}

TEST_F(TokenizerServiceTest, BadRequestsNameTheirField) {
  GenerateRequest none;
  EXPECT_EQ(FieldOf(Call(none).status), "prompt");
  GenerateRequest no_role = Chat("x");
  no_role.mutable_chat()->add_messages()->set_text("y");
  EXPECT_EQ(FieldOf(Call(no_role).status), "messages[1].role");
  GenerateRequest bad_stop = Chat("x");
  bad_stop.add_stop("");
  EXPECT_EQ(FieldOf(Call(bad_stop).status), "stop[0]");
  GenerateRequest no_tokens;
  no_tokens.mutable_tokens();
  EXPECT_EQ(FieldOf(Call(no_tokens).status), "tokens");
}

TEST_F(TokenizerServiceTest, TokenizeAndDetokenizeAreInverse) {
  tokenizer::v1::TokenizeRequest request;
  request.add_texts("hello <|im_end|> world");
  request.add_texts("你好");
  request.set_return_offsets(true);
  tokenizer::v1::TokenizeResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->Tokenize(&context, request, &response).ok());
  ASSERT_EQ(response.results_size(), 2);
  EXPECT_EQ(response.results(0).offsets_size(), 2 * response.results(0).tokens().ids_size());
  tokenizer::v1::DetokenizeRequest back;
  for (const auto& result : response.results()) *back.add_sequences() = result.tokens();
  tokenizer::v1::DetokenizeResponse texts;
  grpc::ClientContext second;
  ASSERT_TRUE(stub_->Detokenize(&second, back, &texts).ok());
  EXPECT_EQ(texts.texts(0), request.texts(0));
  EXPECT_EQ(texts.texts(1), request.texts(1));
  back.set_skip_special_tokens(true);
  grpc::ClientContext third;
  tokenizer::v1::DetokenizeResponse skipped;
  ASSERT_TRUE(stub_->Detokenize(&third, back, &skipped).ok());
  EXPECT_EQ(skipped.texts(0), "hello  world");

  tokenizer::v1::TokenizeRequest many;
  for (int i = 0; i < 1025; ++i) many.add_texts("x");
  grpc::ClientContext fourth;
  EXPECT_EQ(FieldOf(FromGrpcStatus(stub_->Tokenize(&fourth, many, &response))), "texts");
}

TEST_F(TokenizerServiceTest, RenderChatGivesTheTextAndTheIdsThatGenerateSends) {
  engine::v1::GenerateRequest below;
  engine_.on_generate = [&](const auto&, const auto& request, auto stream) {
    below = request;
    stream->Finish(absl::UnavailableError("x"));
  };
  Call(Chat("same"));
  tokenizer::v1::RenderChatRequest request;
  *request.mutable_chat() = Chat("same").chat();
  tokenizer::v1::RenderChatResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->RenderChat(&context, request, &response).ok());
  EXPECT_EQ(response.text(),
            "<|im_start|>system\n<|im_end|>\n<|im_start|>user\nsame<|im_end|>\n"
            "<|im_start|>assistant\n<think>\n");
  EXPECT_EQ(response.tokens().SerializeAsString(), below.prompt().SerializeAsString());
}

TEST_F(TokenizerServiceTest, TheTokenizersFilesComeWholeWithTheirHash) {
  grpc::ClientContext context;
  auto reader = stub_->GetTokenizer(&context, {});
  tokenizer::v1::GetTokenizerResponse piece;
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> hashes;
  while (reader->Read(&piece)) {
    if (!piece.sha256().empty()) hashes[piece.name()] = piece.sha256();
    EXPECT_LE(piece.content().size(), kFilePieceBytes);
    files[piece.name()] += piece.content();
  }
  ASSERT_TRUE(reader->Finish().ok());
  ASSERT_EQ(files.size(), DemoTextModel()->files.size());
  for (const ModelFile& file : DemoTextModel()->files) {
    EXPECT_EQ(files[file.name], file.content);
    EXPECT_EQ(hashes[file.name], file.sha256);
  }
}

TEST_F(TokenizerServiceTest, ModelInfoComesFromTheEngineAndTheTemplate) {
  tokenizer::v1::GetModelInfoResponse info;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->GetModelInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.engine().model(), "demo");
  EXPECT_TRUE(info.has_chat_template());
  EXPECT_EQ(info.chat_template(), DemoTextModel()->default_template);
  EXPECT_EQ(info.default_chat_template_kwargs_json(), "{}");
  EXPECT_NE(std::count(info.template_variables().begin(), info.template_variables().end(),
                       "enable_thinking"),
            0);
  engine_.on_get_model_info = [] { return absl::UnavailableError("gone"); };
  grpc::ClientContext second;
  EXPECT_EQ(stub_->GetModelInfo(&second, {}, &info).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TokenizerServiceTest, ItServesWhenItHasAModelAndTheEngineServes) {
  EXPECT_TRUE(serving_);
  engine_.health.Set(false);
  EXPECT_FALSE(serving_);
  engine_.health.Set(true);
  EXPECT_TRUE(serving_);
}

class LoadingTokenizerTest : public TokenizerServiceTest {
 protected:
  LoadingTokenizerTest() { load_model_ = false; }
};

TEST_F(LoadingTokenizerTest, WithoutAModelEverythingIsUnavailable) {
  EXPECT_FALSE(serving_);
  EXPECT_EQ(Call(Chat("x")).status.code(), absl::StatusCode::kUnavailable);
  tokenizer::v1::TokenizeResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(stub_->Tokenize(&context, {}, &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  service_->SetModel(DemoTextModel(), {});
  EXPECT_TRUE(serving_);
}

}  // namespace
}  // namespace tessera::services

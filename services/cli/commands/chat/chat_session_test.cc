#include "services/cli/commands/chat/chat_session.h"

#include <unistd.h>

#include <functional>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/cli/commands/chat/answer_call.h"
#include "services/clients/fake_parser_client.h"
#include "services/common/manual_clock.h"
#include "services/common/status_map.h"

namespace tessera::cli {
namespace {

using parser::v1::ChatStreamRequest;
using parser::v1::ChatStreamResponse;
using services::FakeParserClient;
using Stream = std::shared_ptr<FakeParserClient::ChatStreamFake>;

ChatStreamResponse Content(const std::string& text) {
  ChatStreamResponse event;
  event.mutable_delta()->set_content(text);
  return event;
}

ChatStreamResponse Call(const std::string& name, const std::string& arguments) {
  ChatStreamResponse event;
  parser::v1::ToolCallDelta& call = *event.mutable_delta()->add_tool_calls();
  call.set_id("call_" + name);
  call.set_name(name);
  call.set_arguments_fragment(arguments);
  return event;
}

ChatStreamResponse End(parser::v1::FinishReason reason) {
  ChatStreamResponse event;
  event.mutable_delta()->mutable_end()->set_finish_reason(reason);
  return event;
}

ChatStreamResponse Finished() {
  ChatStreamResponse event;
  event.mutable_finished()->mutable_usage()->set_completion_tokens(3);
  return event;
}

void SendAnswer(const Stream& stream, ChatStreamResponse delta,
                parser::v1::FinishReason reason = parser::v1::FINISH_REASON_STOP) {
  ChatStreamResponse started;
  started.mutable_started();
  for (const auto& event : {started, delta, End(reason), Finished()}) stream->Send(event);
  stream->Finish(absl::OkStatus());
}

// Text that is kept, and an action for when it is flushed.
struct FlushHook final : std::stringbuf {
  int sync() override {
    if (on_flush) on_flush();
    return 0;
  }
  std::function<void()> on_flush;
};

// A session over a pipe, whose whole input stands in it from the start.
class ChatSessionTest : public testing::Test {
 protected:
  ChatSessionTest() {
    EXPECT_EQ(pipe(input_), 0);
    EXPECT_EQ(pipe(interrupt_), 0);
    parser_.on_chat_stream = [this](const auto&, const ChatStreamRequest& request,
                                    const Stream& stream) {
      requests_.push_back(request);
      answer_(stream);
    };
  }
  ~ChatSessionTest() override {
    for (const int fd : {input_[0], input_[1], interrupt_[0], interrupt_[1]}) close(fd);
  }

  absl::Status Talk(std::string_view input, bool prompts) {
    EXPECT_EQ(write(input_[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
    close(std::exchange(input_[1], dup(interrupt_[1])));
    LineReader lines(input_[0], interrupt_[0]);
    return Session(&lines, prompts).Talk();
  }
  absl::Status Ask(const std::string& question) { return Session(nullptr, false).Ask(question); }

  ChatSession Session(LineReader* lines, bool prompts) {
    return ChatSession(parser_, "h:1", {},
                       {.lines = lines,
                        .out = &out_,
                        .notes = &notes_,
                        .clock = &clock_,
                        .prompts = prompts,
                        .interrupt_fd = interrupt_[0],
                        .take_interrupt = [this] {
                          char byte = 0;
                          EXPECT_EQ(read(interrupt_[0], &byte, 1), 1);
                        }});
  }
  void Interrupt() { ASSERT_EQ(write(interrupt_[1], "x", 1), 1); }
  std::string Roles(size_t request) const {
    std::string roles;
    for (const auto& message : requests_[request].options().chat().messages()) {
      roles += message.role()[0];
    }
    return roles;
  }

  int input_[2];
  int interrupt_[2];
  FakeParserClient parser_;
  std::function<void(const Stream&)> answer_ = [](const Stream& stream) {
    SendAnswer(stream, Content("ok"));
  };
  std::vector<ChatStreamRequest> requests_;
  services::ManualClock clock_;
  FlushHook hook_;
  std::ostream out_{&hook_};
  std::ostringstream notes_;
};

TEST_F(ChatSessionTest, AskShowsTheAnswerAndItsFigures) {
  EXPECT_TRUE(Ask("hi").ok());
  EXPECT_EQ(hook_.str(), "[answer] ok\n");
  EXPECT_EQ(notes_.str(), "prompt 0 tokens, answer 3 tokens, first token after 0 ms, stop\n");
  EXPECT_EQ(requests_[0].options().chat().messages(0).text(), "hi");
}

TEST_F(ChatSessionTest, SpeedIsMeasuredFromTheFirstOutputOn) {
  hook_.on_flush = [this] { clock_.Advance(absl::Milliseconds(100)); };
  answer_ = [](const Stream& stream) {
    for (const uint32_t tokens : {2, 12, 22}) {
      ChatStreamResponse event = Content("x");
      event.mutable_delta()->set_completion_tokens(tokens);
      stream->Send(event);
    }
    stream->Send(Finished());
    stream->Finish(absl::OkStatus());
  };
  EXPECT_TRUE(Ask("hi").ok());
  EXPECT_NE(notes_.str().find(" 100.0 tokens/s, first token after 0 ms"), std::string::npos)
      << notes_.str();
}

TEST_F(ChatSessionTest, MoreEventsThanMayWaitAllArrive) {
  answer_ = [](const Stream& stream) {
    for (size_t i = 0; i < 3 * kEventsWaitingMax; ++i) stream->Send(Content("x"));
    EXPECT_TRUE(stream->paused());  // held up, since nothing has been shown yet
    SendAnswer(stream, Content("y"));
  };
  EXPECT_TRUE(Ask("hi").ok());
  EXPECT_EQ(hook_.str(), "[answer] " + std::string(3 * kEventsWaitingMax, 'x') + "y\n");
}

TEST_F(ChatSessionTest, AServiceThatIsNotThereIsSaidSo) {
  answer_ = [](const Stream& stream) {
    stream->Finish(absl::UnavailableError("failed to connect to all addresses"));
  };
  EXPECT_EQ(Ask("hi").message(), "no parser service at h:1; start one with `tessera up`");
}

TEST_F(ChatSessionTest, AServiceThatLacksItsOwnPeerIsQuoted) {
  answer_ = [](const Stream& stream) {
    stream->Finish(services::WithRetryDelay(
        absl::UnavailableError("the engine cannot be reached; try again"), absl::Seconds(1)));
  };
  EXPECT_EQ(Ask("hi").message(), "the engine cannot be reached; try again");
}

TEST_F(ChatSessionTest, AServiceLostInTheMiddleLeavesWhatCame) {
  answer_ = [](const Stream& stream) {
    stream->Send(Content("half"));
    stream->Finish(absl::UnavailableError("socket closed"));
  };
  EXPECT_EQ(Ask("hi").code(), absl::StatusCode::kAborted);
  EXPECT_EQ(hook_.str(), "[answer] half\n");
  answer_ = [](const Stream& stream) { stream->Finish(absl::OkStatus()); };
  EXPECT_EQ(Ask("hi").code(), absl::StatusCode::kInternal);  // it ended without `finished`
}

TEST_F(ChatSessionTest, AnInterruptCancelsTheCall) {
  Stream kept;
  answer_ = [&](const Stream& stream) {
    kept = stream;
    stream->Send(Content("never shown"));
    Interrupt();
  };
  EXPECT_EQ(Ask("hi").code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(kept->cancelled());
  EXPECT_EQ(hook_.str(), "");
}

TEST_F(ChatSessionTest, TalkKeepsTheConversationAndResetForgetsIt) {
  EXPECT_TRUE(Talk("one\n  \ntwo\n/reset\nthree\n", /*prompts=*/false).ok());
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(Roles(0), "u");
  EXPECT_EQ(Roles(1), "uau");
  EXPECT_EQ(Roles(2), "u");
  EXPECT_EQ(requests_[1].options().chat().messages(1).text(), "ok");
}

TEST_F(ChatSessionTest, TheNextLinesAreTheResultsOfToolCalls) {
  answer_ = [this](const Stream& stream) {
    if (requests_.size() > 1) return SendAnswer(stream, Content("17 and 3"));
    ChatStreamResponse calls = Call("roll", "{\"n\": 1}");
    *calls.mutable_delta()->add_tool_calls() = Call("draw", "{}").delta().tool_calls(0);
    SendAnswer(stream, calls, parser::v1::FINISH_REASON_TOOL_CALLS);
  };
  EXPECT_TRUE(Talk("go\n17\n3\n", /*prompts=*/true).ok());
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(Roles(1), "uatt");
  const auto& messages = requests_[1].options().chat().messages();
  EXPECT_EQ(messages.Get(2).tool_call_id(), "call_roll");
  EXPECT_EQ(messages.Get(2).text(), "17");
  EXPECT_EQ(messages.Get(3).tool_call_id(), "call_draw");
  EXPECT_EQ(messages.Get(3).text(), "3");
  EXPECT_NE(notes_.str().find("result of roll> result of draw> "), std::string::npos);
  EXPECT_EQ(hook_.str(), "[tool call] roll {\"n\": 1}\n[tool call] draw {}\n[answer] 17 and 3\n");
}

TEST_F(ChatSessionTest, AFailedQuestionIsTakenBackAndTheDialogueGoesOn) {
  answer_ = [this](const Stream& stream) {
    if (requests_.size() != 2) return SendAnswer(stream, Content("ok"));
    stream->Finish(absl::InvalidArgumentError("messages: too long"));
  };
  EXPECT_TRUE(Talk("one\ntwo\nthree\n", /*prompts=*/true).ok());
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(Roles(2), "uau");
  EXPECT_EQ(requests_[2].options().chat().messages(2).text(), "three");
  EXPECT_NE(notes_.str().find("messages: too long"), std::string::npos);
}

TEST_F(ChatSessionTest, AScriptStopsAtTheFirstFailure) {
  answer_ = [](const Stream& stream) { stream->Finish(absl::InvalidArgumentError("no")); };
  EXPECT_EQ(Talk("one\ntwo\n", /*prompts=*/false).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(ChatSessionTest, AnInterruptOfAnAnswerKeepsTheDialogue) {
  answer_ = [this](const Stream& stream) {
    if (requests_.size() != 1) return SendAnswer(stream, Content("ok"));
    Interrupt();
  };
  EXPECT_TRUE(Talk("one\ntwo\n", /*prompts=*/true).ok());
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(Roles(1), "u");
}

TEST_F(ChatSessionTest, AnInterruptInsteadOfAResultTakesTheQuestionBack) {
  answer_ = [this](const Stream& stream) {
    if (requests_.size() > 1) return SendAnswer(stream, Content("ok"));
    SendAnswer(stream, Call("roll", "{}"), parser::v1::FINISH_REASON_TOOL_CALLS);
  };
  hook_.on_flush = [this] {  // when the answer is complete, but before its result is read
    if (std::exchange(hook_.on_flush, nullptr)) Interrupt();
  };
  EXPECT_TRUE(Talk("go\nnext\n", /*prompts=*/true).ok());
  EXPECT_NE(notes_.str().find("result of roll> "), std::string::npos);
}

}  // namespace
}  // namespace tessera::cli

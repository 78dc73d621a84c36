#include "services/cli/commands/chat/chat_session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/cli/commands/chat/answer.h"
#include "services/cli/commands/chat/answer_call.h"
#include "services/common/status_map.h"

namespace tessera::cli {
namespace {

constexpr char kHelp[] =
    "/reset begins anew, Ctrl-C cancels the present answer, Ctrl-D ends. After a tool call the "
    "next line is its result.\n";

// Times the deltas of one answer.
class Stopwatch final {
 public:
  explicit Stopwatch(const services::Clock& clock) : clock_(clock), begin_(clock.Monotonic()) {}

  void Add(uint32_t completion_tokens) {
    const absl::Duration now = clock_.Monotonic() - begin_;
    if (tokens_first_ == 0) {
      tokens_first_ = completion_tokens;
      pace_.to_first = now;
    }
    pace_.rest = now - pace_.to_first;
    pace_.tokens_rest = completion_tokens - tokens_first_;
  }
  const AnswerPace& pace() const { return pace_; }

 private:
  const services::Clock& clock_;
  const absl::Duration begin_;
  uint32_t tokens_first_ = 0;
  AnswerPace pace_;
};

}  // namespace

ChatSession::ChatSession(services::ParserClient& parser, std::string address, ChatSettings settings,
                         ChatConsole console)
    : parser_(parser),
      address_(std::move(address)),
      conversation_(std::move(settings)),
      console_(std::move(console)) {}

absl::Status ChatSession::Ask(std::string question) {
  conversation_.AddUser(std::move(question));
  tokenizer::v1::Message answer;
  return RunAnswer(answer);
}

absl::Status ChatSession::Talk() {
  if (console_.prompts) *console_.notes << kHelp;
  bool ended = false;
  while (!ended) {
    std::string line;
    const LineEvent event = ReadLine("> ", line);
    if (event == LineEvent::kEnd) break;
    if (event == LineEvent::kInterrupted) continue;
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    if (line == "/reset") {
      conversation_.Reset();
      *console_.notes << "(the conversation begins anew)\n";
    } else if (line == "/help") {
      *console_.notes << kHelp;
    } else if (absl::Status s = RunTurn(std::move(line), ended); !s.ok()) {
      conversation_.TakeBack();
      if (!console_.prompts) return s;
      *console_.notes << "tessera: " << s.message() << " (the question was taken back)\n";
    }
  }
  if (console_.prompts) *console_.notes << '\n';
  return absl::OkStatus();
}

absl::Status ChatSession::RunTurn(std::string question, bool& ended) {
  conversation_.AddUser(std::move(question));
  while (true) {
    tokenizer::v1::Message answer;
    if (absl::Status s = RunAnswer(answer); !s.ok()) return s;
    if (answer.tool_calls_size() == 0) return absl::OkStatus();
    const LineEvent event = ReadToolResults(answer);
    if (event == LineEvent::kInterrupted) return absl::CancelledError("cancelled");
    if (event == LineEvent::kEnd) {
      ended = true;
      return absl::OkStatus();
    }
  }
}

LineEvent ChatSession::ReadToolResults(const tokenizer::v1::Message& answer) {
  for (const tokenizer::v1::ToolCall& call : answer.tool_calls()) {
    std::string line;
    const LineEvent event = ReadLine(absl::StrCat("result of ", call.name(), "> "), line);
    if (event != LineEvent::kLine) return event;
    conversation_.AddToolResult(call, std::move(line));
  }
  return LineEvent::kLine;
}

absl::Status ChatSession::RunAnswer(tokenizer::v1::Message& answer) {
  if (absl::Status s = conversation_.CheckText(); !s.ok()) return s;
  ChatPrinter printer(console_.style);
  Answer gathered;
  Stopwatch stopwatch(*console_.clock);
  parser::v1::Usage usage;
  std::string shown;
  const absl::Status status = RunAnswerCall(parser_, conversation_.Request(), console_.interrupt_fd,
                                            [&](const parser::v1::ChatStreamResponse& event) {
                                              if (event.has_finished())
                                                usage = event.finished().usage();
                                              if (!event.has_delta()) return;
                                              stopwatch.Add(event.delta().completion_tokens());
                                              gathered.Add(event.delta());
                                              printer.Append(event.delta(), shown);
                                              if (shown.empty()) return;
                                              *console_.out << shown << std::flush;
                                              shown.clear();
                                            });
  printer.End(shown);
  *console_.out << shown << std::flush;
  if (!status.ok()) {
    if (absl::IsCancelled(status)) console_.take_interrupt();
    return Explain(status);
  }
  *console_.notes << StatsLine(usage, stopwatch.pace(), gathered.finish_reason()) << '\n'
                  << std::flush;
  answer = gathered.message();
  conversation_.AddAnswer(answer);
  return absl::OkStatus();
}

LineEvent ChatSession::ReadLine(const std::string& prompt, std::string& line) {
  if (console_.prompts) *console_.notes << prompt << std::flush;
  const LineEvent event = console_.lines->Read(line);
  if (event == LineEvent::kInterrupted) {
    console_.take_interrupt();
    *console_.notes << "\n(Ctrl-D ends)\n";
  }
  return event;
}

absl::Status ChatSession::Explain(const absl::Status& status) const {
  if (absl::IsCancelled(status)) return absl::CancelledError("cancelled");
  // A service that is there says when to try again; a broken connection does not.
  if (absl::IsUnavailable(status) && !services::RetryDelayOf(status).has_value()) {
    return absl::UnavailableError(
        absl::StrCat("no parser service at ", address_, "; start one with `tessera up`"));
  }
  return status;
}

}  // namespace tessera::cli

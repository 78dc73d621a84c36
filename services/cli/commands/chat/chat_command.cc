#include "services/cli/commands/chat/chat_command.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/cli/commands/chat/chat_session.h"
#include "services/cli/commands/chat/conversation.h"
#include "services/clients/channel.h"
#include "services/clients/parser_client.h"
#include "services/common/field_error.h"
#include "services/common/log.h"

namespace tessera::cli {
namespace {

constexpr int kExitBadFlags = 2;
constexpr int kExitInterrupted = 130;  // as a shell reports SIGINT

struct ChatOptions {
  std::string address = "127.0.0.1:50053";
  bool no_thinking = false;
  std::string tools_file;
  std::string prompt;
  ChatSettings settings;
};

// Ctrl-C as a descriptor that can be read. Must be made before the first thread: each inherits the
// blocked signal.
class InterruptSignal final {
 public:
  InterruptSignal() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
    fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~InterruptSignal() {
    if (fd_ >= 0) close(fd_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  InterruptSignal(const InterruptSignal&) = delete;
  InterruptSignal& operator=(const InterruptSignal&) = delete;

  int fd() const { return fd_; }
  void Take() {
    signalfd_siginfo taken;
    [[maybe_unused]] const ssize_t bytes = read(fd_, &taken, sizeof(taken));
  }

 private:
  int fd_ = -1;
  sigset_t before_;
};

int Fail(const absl::Status& status, int exit_status) {
  std::cerr << "tessera: " << status.message() << '\n';
  return exit_status;
}

absl::Status ReadToolsFile(ChatOptions& options) {
  if (options.tools_file.empty()) return absl::OkStatus();
  std::ifstream file(options.tools_file, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return services::InvalidField("--tools", absl::StrCat(options.tools_file, " cannot be read"));
  }
  absl::StatusOr<std::vector<tokenizer::v1::Tool>> tools = ReadTools(text.str());
  if (!tools.ok()) return tools.status();
  options.settings.tools = *std::move(tools);
  return absl::OkStatus();
}

int Run(ChatOptions& options, bool interactive) {
  if (absl::Status s = ReadToolsFile(options); !s.ok()) return Fail(s, kExitBadFlags);
  options.settings.thinking = !options.no_thinking;
  InterruptSignal interrupt;
  // gRPC would write about connections to standard error itself.
  const services::Logger quiet({.service = "chat", .level = services::LogLevel::kOff, .sink = {}});
  services::RouteGrpcLogs(&quiet);
  absl::Status status;
  {
    const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
        services::MakeChannel(options.address);
    if (!channel.ok()) return Fail(channel.status(), kExitBadFlags);
    const std::unique_ptr<services::ParserClient> parser = services::MakeParserClient(*channel);
    LineReader lines(STDIN_FILENO, interrupt.fd());
    ChatSession session(
        *parser, options.address, options.settings,
        {.lines = &lines,
         .out = &std::cout,
         .notes = &std::cerr,
         .style = isatty(STDOUT_FILENO) == 1 ? PrintStyle::kTerminal : PrintStyle::kPlain,
         .prompts = isatty(STDIN_FILENO) == 1,
         .interrupt_fd = interrupt.fd(),
         .take_interrupt = [&interrupt] { interrupt.Take(); }});
    status = interactive ? session.Talk() : session.Ask(options.prompt);
  }
  services::RouteGrpcLogs(nullptr);
  if (status.ok()) return 0;
  return Fail(status, absl::IsCancelled(status) ? kExitInterrupted : 1);
}

}  // namespace

void AddChatCommand(CLI::App& app, int& exit_status) {
  CLI::App* const chat = app.add_subcommand("chat", "talk to a running model (see `tessera up`)");
  auto options = std::make_shared<ChatOptions>();
  ChatSettings& settings = options->settings;
  chat->add_option("--address", options->address, "the parser service")->capture_default_str();
  CLI::Option* const no_thinking =
      chat->add_flag("--no-thinking", options->no_thinking, "answer without reasoning");
  chat->add_flag("--low-effort", settings.low_effort, "reason briefly")->excludes(no_thinking);
  chat->add_option("--tools", options->tools_file, "JSON file with an OpenAI array of tools");
  chat->add_option("--system", settings.system, "system message");
  chat->add_option("--max-tokens", settings.max_tokens, "at most this many tokens an answer")
      ->check(CLI::PositiveNumber);
  chat->add_option("--temperature", settings.temperature, "0 takes the most likely token")
      ->check(CLI::Range(0.0, 100.0));
  chat->add_option("--seed", settings.seed, "makes the choice of tokens repeatable");
  CLI::Option* const prompt = chat->add_option(
      "prompt", options->prompt, "one question; without it, a dialogue over standard input");
  chat->callback([options, prompt, &exit_status] {
    exit_status = Run(*options, /*interactive=*/prompt->count() == 0);
  });
}

}  // namespace tessera::cli

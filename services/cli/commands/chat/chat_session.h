#ifndef TESSERA_SERVICES_CLI_COMMANDS_CHAT_CHAT_SESSION_H_
#define TESSERA_SERVICES_CLI_COMMANDS_CHAT_CHAT_SESSION_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "services/cli/commands/chat/chat_printer.h"
#include "services/cli/commands/chat/conversation.h"
#include "services/cli/commands/chat/line_reader.h"
#include "services/clients/parser_client.h"
#include "services/common/clock.h"

namespace tessera::cli {

// Where a session reads and writes. All is borrowed.
struct ChatConsole {
  LineReader* lines = nullptr;
  std::ostream* out = nullptr;    // answers
  std::ostream* notes = nullptr;  // all else: prompts, figures, errors
  PrintStyle style = PrintStyle::kPlain;
  const services::Clock* clock = &services::RealClock();
  bool prompts = false;   // whether someone is typing
  int interrupt_fd = -1;  // readable while an interrupt has not been taken
  std::function<void()> take_interrupt = [] {};
};

// A person, or a script, talking to a parser service. Threading: one thread.
class ChatSession final {
 public:
  // `address` is only named in errors. Borrows the parser.
  ChatSession(services::ParserClient& parser, std::string address, ChatSettings settings,
              ChatConsole console);

  // Asks one question and shows its answer. Errors: kCancelled after an interrupt, kUnavailable
  // with what to do about it, else as the service says.
  absl::Status Ask(std::string question);

  // Asks each line that is read, until the end of input. `/reset` begins anew, `/help` tells. When
  // the model calls tools, the next lines are their results, one each. An interrupt cancels the
  // answer. A question that failed or was cancelled is taken back.
  // Errors: none in a dialogue that a person types; of a script, the first failure, after which it
  // has stopped.
  absl::Status Talk();

 private:
  // Asks for one answer, shows it, and adds it to the conversation.
  absl::Status RunAnswer(tokenizer::v1::Message& answer);
  // Reads a result for each call. Anything but kLine: input ended or was interrupted before.
  LineEvent ReadToolResults(const tokenizer::v1::Message& answer);
  // One question with all the tool results that it leads to. Sets `ended` at the end of input.
  absl::Status RunTurn(std::string question, bool& ended);
  LineEvent ReadLine(const std::string& prompt, std::string& line);
  absl::Status Explain(const absl::Status& status) const;

  services::ParserClient& parser_;
  const std::string address_;
  Conversation conversation_;
  const ChatConsole console_;
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_CHAT_CHAT_SESSION_H_

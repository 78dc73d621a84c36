#ifndef TESSERA_SERVICES_CLI_COMMANDS_CHAT_CHAT_PRINTER_H_
#define TESSERA_SERVICES_CLI_COMMANDS_CHAT_CHAT_PRINTER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "tessera/parser/v1/parser.pb.h"

namespace tessera::cli {

enum class PrintStyle : uint8_t {
  kPlain,     // sections marked in words, the text as it came
  kTerminal,  // reasoning dimmed, calls coloured, control characters of the text made visible
};

// Turns the deltas of one answer into what a person reads. A section (reasoning, answer, tool call)
// begins on a line of its own with its first visible character; newlines around it are left out.
// Pieces may be cut anywhere: the joined text is the same.
//   [reasoning] 380-248 is 132.
//   [answer] 132
//   [tool call] roll_dice {"faces": 20}
// In a terminal the text cannot move the cursor or change colours: control characters other than
// tab and newline are shown as ^X.
// Threading: one thread. Cost: appends to the given text.
class ChatPrinter final {
 public:
  explicit ChatPrinter(PrintStyle style) : style_(style) {}

  // Appends to `out` what one delta shows.
  void Append(const parser::v1::ChatDelta& delta, std::string& out);
  // Ends the last line and the colours; the printer is then as new.
  void End(std::string& out);

 private:
  enum class Section : uint8_t { kNone, kReasoning, kAnswer, kCall };

  void AppendText(Section section, std::string_view text, std::string& out);
  void AppendCall(const parser::v1::ToolCallDelta& call, std::string& out);
  void Open(Section section, std::string& out);
  void Close(std::string& out);
  void AppendVisible(std::string_view text, std::string& out) const;

  const PrintStyle style_;
  Section section_ = Section::kNone;  // the one that has been opened and not closed
  Section last_ = Section::kNone;     // the one that text came for last, opened or not
  std::string held_;                  // white space that is shown only if more text follows it
};

// How an answer came, as seen from here.
struct AnswerPace {
  absl::Duration to_first;   // from the question to the first output
  absl::Duration rest;       // from there to the last output
  uint32_t tokens_rest = 0;  // generated in `rest`
};

// One line about an answer that has ended, without newline:
//   prompt 34 tokens, answer 42 tokens (30 reasoning), 812.3 tokens/s, first token after 12 ms,
//   stop
std::string StatsLine(const parser::v1::Usage& usage, const AnswerPace& pace,
                      parser::v1::FinishReason reason);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_CHAT_CHAT_PRINTER_H_

#include "services/cli/commands/chat/chat_printer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kCyan = "\x1b[36m";
constexpr std::string_view kPlainAgain = "\x1b[0m";
constexpr std::string_view kBlank = " \t\r\n";

std::string_view ReasonName(parser::v1::FinishReason reason) {
  switch (reason) {
    case parser::v1::FINISH_REASON_STOP:
      return "stop";
    case parser::v1::FINISH_REASON_LENGTH:
      return "length";
    case parser::v1::FINISH_REASON_TOOL_CALLS:
      return "tool_calls";
    case parser::v1::FINISH_REASON_ABORT:
      return "abort";
    default:
      return "unknown";
  }
}

}  // namespace

void ChatPrinter::Append(const parser::v1::ChatDelta& delta, std::string& out) {
  if (delta.has_reasoning()) AppendText(Section::kReasoning, delta.reasoning(), out);
  if (delta.has_content()) AppendText(Section::kAnswer, delta.content(), out);
  for (const parser::v1::ToolCallDelta& call : delta.tool_calls()) AppendCall(call, out);
}

void ChatPrinter::End(std::string& out) {
  Close(out);
  last_ = Section::kNone;
}

void ChatPrinter::AppendText(Section section, std::string_view text, std::string& out) {
  if (section != last_) {
    held_.clear();
    last_ = section;
  }
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) {
    held_ += text;
    return;
  }
  const size_t end = text.find_last_not_of(kBlank) + 1;
  std::string blank = std::exchange(held_, {});
  blank += text.substr(0, first);
  if (section_ != section) {
    // Spaces that indent the first line are text, the newlines before it are not.
    blank.erase(0, blank.rfind('\n') + 1);
    Open(section, out);
  }
  AppendVisible(blank, out);
  AppendVisible(text.substr(first, end - first), out);
  held_ = text.substr(end);
}

void ChatPrinter::AppendCall(const parser::v1::ToolCallDelta& call, std::string& out) {
  if (call.has_name()) {
    Open(Section::kCall, out);
    AppendVisible(call.name(), out);
    if (style_ == PrintStyle::kTerminal) out += kPlainAgain;
    out += ' ';
  }
  AppendVisible(call.arguments_fragment(), out);
  held_.clear();
  last_ = Section::kCall;
}

void ChatPrinter::Open(Section section, std::string& out) {
  Close(out);
  section_ = section;
  const bool terminal = style_ == PrintStyle::kTerminal;
  switch (section) {
    case Section::kReasoning:
      out += terminal ? kDim : "[reasoning] ";
      break;
    case Section::kAnswer:
      out += terminal ? "" : "[answer] ";
      break;
    case Section::kCall:
      if (terminal) out += kCyan;
      out += terminal ? "\u2192 " : "[tool call] ";
      break;
    case Section::kNone:
      break;
  }
}

void ChatPrinter::Close(std::string& out) {
  held_.clear();
  if (section_ == Section::kNone) return;
  if (style_ == PrintStyle::kTerminal && section_ == Section::kReasoning) out += kPlainAgain;
  out += '\n';
  section_ = Section::kNone;
}

void ChatPrinter::AppendVisible(std::string_view text, std::string& out) const {
  if (style_ == PrintStyle::kPlain) {
    out += text;
    return;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, which some terminals obey, are C2 80 to C2 9F.
    const bool c1 =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c1) {
      absl::StrAppend(&out, "^[", std::string(1, static_cast<char>(text[++i] - 0x40)));
    } else if ((byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7F) {
      absl::StrAppend(&out, "^", std::string(1, static_cast<char>(byte ^ 0x40)));
    } else {
      out += text[i];
    }
  }
}

std::string StatsLine(const parser::v1::Usage& usage, const AnswerPace& pace,
                      parser::v1::FinishReason reason) {
  const uint32_t tokens = usage.completion_tokens();
  std::string line = absl::StrCat("prompt ", usage.prompt_tokens(), " tokens");
  if (usage.cached_prompt_tokens() > 0) {
    absl::StrAppend(&line, " (", usage.cached_prompt_tokens(), " cached)");
  }
  absl::StrAppend(&line, ", answer ", tokens, tokens == 1 ? " token" : " tokens");
  if (usage.reasoning_tokens() > 0) {
    absl::StrAppend(&line, " (", usage.reasoning_tokens(), " reasoning)");
  }
  if (pace.tokens_rest > 0 && pace.rest > absl::ZeroDuration()) {
    absl::StrAppendFormat(&line, ", %.1f tokens/s",
                          pace.tokens_rest / absl::ToDoubleSeconds(pace.rest));
  }
  if (tokens > 0) {
    absl::StrAppendFormat(&line, ", first token after %.0f ms",
                          absl::ToDoubleMilliseconds(pace.to_first));
  }
  const std::string_view name = ReasonName(reason);
  return absl::StrCat(line, ", ", absl::string_view(name.data(), name.size()));
}

}  // namespace tessera::cli

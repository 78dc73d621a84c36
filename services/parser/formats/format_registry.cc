#include "services/parser/formats/format_registry.h"

#include <algorithm>

#include "services/common/field_error.h"
#include "services/parser/formats/reasoning_format.h"
#include "services/parser/formats/tool_formats.h"

namespace tessera::parser {
namespace {

absl::Status CheckName(std::string_view field, std::string_view name,
                       const std::vector<std::string_view>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return absl::OkStatus();
  std::string message = "\"" + std::string(name) + "\" is no known format; give one of ";
  for (size_t i = 0; i < known.size(); ++i) {
    if (i > 0) message.append(", ");
    message.append(known[i]);
  }
  return services::InvalidField(field, message);
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

std::vector<std::string_view> ReasoningFormatNames() { return ReasoningFormatTable(); }

std::vector<std::string_view> ToolFormatNames() { return ToolFormatTable(); }

absl::Status CheckFormatNames(std::string_view reasoning_format, std::string_view tool_format) {
  if (absl::Status s = CheckName("reasoning_format", reasoning_format, ReasoningFormatNames());
      !s.ok()) {
    return s;
  }
  return CheckName("tool_format", tool_format, ToolFormatNames());
}

FormatGuess GuessFormats(std::string_view template_text) {
  FormatGuess guess{"none", "none"};
  const bool think = Contains(template_text, "<think>");
  const bool function_tags = Contains(template_text, "<function=");
  if (think) {
    const bool deepseek = Contains(template_text, "<｜Assistant｜>");
    // Nemotron-3 and Qwen3 both switch thinking; only the former writes calls as function tags and
    // thinks at once.
    guess.reasoning_format = deepseek ? "deepseek_r1" : function_tags ? "nemotron_v3" : "qwen3";
  }
  if (function_tags) {
    guess.tool_format = "qwen3_coder";
  } else if (Contains(template_text, "[TOOL_CALLS]")) {
    guess.tool_format = "mistral";
  } else if (Contains(template_text, "<tool_call>")) {
    guess.tool_format = "hermes";
  } else if (Contains(template_text, "<|python_tag|>") ||
             (Contains(template_text, "<|eot_id|>") && Contains(template_text, "\"parameters\""))) {
    guess.tool_format = "llama3_json";
  }
  return guess;
}

}  // namespace tessera::parser

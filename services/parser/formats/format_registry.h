#ifndef TESSERA_SERVICES_PARSER_FORMATS_FORMAT_REGISTRY_H_
#define TESSERA_SERVICES_PARSER_FORMATS_FORMAT_REGISTRY_H_

// The formats by name, and which of them a checkpoint speaks.

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tessera::parser {

// Names that ParserOptions::reasoning_format and tool_format may hold, "none" last.
std::vector<std::string_view> ReasoningFormatNames();
std::vector<std::string_view> ToolFormatNames();

// kInvalidArgument naming the field and the names that exist.
absl::Status CheckFormatNames(std::string_view reasoning_format, std::string_view tool_format);

struct FormatGuess {
  std::string reasoning_format;
  std::string tool_format;
};

// Reads the markers that a chat template writes into prompts. A template that shows none gives
// "none". A flag of the operator overrides either name.
FormatGuess GuessFormats(std::string_view template_text);

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_FORMAT_REGISTRY_H_

#ifndef TESSERA_SERVICES_PARSER_FORMATS_REASONING_FORMAT_H_
#define TESSERA_SERVICES_PARSER_FORMATS_REASONING_FORMAT_H_

// The ways models mark their reasoning. They differ in data only; the output machine does the work.

#include <string_view>
#include <vector>

namespace tessera::parser {

struct ReasoningFormat {
  std::string_view name;
  std::string_view open;   // dropped at the very start, where models repeat it; "": no reasoning
  std::string_view close;  // ends the reasoning; dropped in content
  std::string_view end_of_turn;  // dropped in both channels; "": none
  bool always_thinks;            // enable_thinking has no say
  bool off_forces_content;       // thinking off implies force_nonempty_content
};

std::vector<std::string_view> ReasoningFormatTable();

// Null if there is none of that name.
const ReasoningFormat* FindReasoningFormat(std::string_view name);

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_REASONING_FORMAT_H_

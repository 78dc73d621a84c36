// libFuzzer target: the first bytes choose formats and options, the rest is the model's text.
// Aborts if two splits of the same text differ in any event or counter, if a stream breaks its
// contract, or if more is held back than the limits allow. `--tool_format=NAME` (libFuzzer passes
// it over) keeps to one format. See README.md for the command.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "services/parser/formats/format_registry.h"
#include "services/parser/formats/output_cases.h"
#include "services/parser/formats/output_parser.h"

namespace {

using tessera::parser::OutputCase;

std::string_view only_format;

template <typename List>
std::string Pick(const List& list, size_t index) {
  return std::string(list[index % list.size()]);
}

tessera::parser::ParserOptions OptionsFrom(const uint8_t* data) {
  tessera::parser::ParserOptions options;
  options.tool_format = only_format.empty() ? Pick(tessera::parser::ToolFormatNames(), data[0] & 15)
                                            : std::string(only_format);
  options.reasoning_format = Pick(tessera::parser::ReasoningFormatNames(), data[0] >> 4);
  options.enable_thinking = (data[1] & 1) != 0;
  options.force_nonempty_content = (data[1] & 2) != 0;
  options.parallel_tool_calls = (data[1] & 4) == 0;
  options.fences_are_text = (data[1] & 8) == 0;
  static const auto& schema = *new nlohmann::ordered_json(nlohmann::ordered_json::parse(
      R"({"properties": {"s": {"type": "string"}, "n": {"type": "integer"},
          "o": {"type": ["object", "array", "string", "null"]}, "b": {"type": "boolean"},
          "r": {"$ref": "#/$defs/x"}, "e": {"enum": [1, "a", null]}},
          "$defs": {"x": {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/x"}]}}})"));
  options.tools = {{"f", schema}, {"ping", nullptr}};
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kFlag = "--tool_format=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.substr(0, kFlag.size()) == kFlag) only_format = argument.substr(kFlag.size());
  }
  const auto known = tessera::parser::ToolFormatNames();
  if (only_format.empty() || std::find(known.begin(), known.end(), only_format) != known.end()) {
    return 0;
  }
  std::fprintf(stderr, "there is no tool format of that name\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHeaderBytes = 3;
  if (size < kHeaderBytes) return 0;
  const OutputCase c{
      OptionsFrom(data),
      std::string(reinterpret_cast<const char*>(data) + kHeaderBytes, size - kHeaderBytes),
      static_cast<tessera::parser::EngineFinish>(data[2] % 4)};
  const std::string shown = tessera::parser::ShowAllSplits(c, /*splits=*/3);
  if (shown.rfind("SPLIT", 0) == 0 || shown.rfind("WHOLE", 0) == 0) {
    std::fprintf(stderr, "%s\n", shown.c_str());
    std::abort();
  }
  return 0;
}

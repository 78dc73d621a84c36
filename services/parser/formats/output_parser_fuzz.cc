// libFuzzer target: the first bytes choose format, options and cuts, the rest is the model's text.
// Aborts if two splits of the same text differ. See README.md for the command.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "services/parser/formats/format_registry.h"
#include "services/parser/formats/output_parser.h"

namespace {

using tessera::parser::CreateOutputParser;
using tessera::parser::ParserEvent;
using tessera::parser::ParserOptions;

std::string Run(const ParserOptions& options, std::string_view text, size_t piece,
                tessera::parser::EngineFinish finish) {
  tessera::parser::SeededCallIds ids(1);
  const auto parser = *CreateOutputParser(options, &ids);
  std::vector<ParserEvent> events;
  for (size_t i = 0; i < text.size(); i += piece) parser->Push(text.substr(i, piece), &events);
  parser->Finish(finish, &events);
  const tessera::parser::ParsedMessage message = tessera::parser::Assemble(events);
  std::string shown = message.reasoning.value_or("-") + "|" + message.content.value_or("-");
  for (const auto& call : message.tool_calls) {
    shown += "|" + call.name + call.arguments + (call.malformed ? "!" : "");
    if (!nlohmann::json::parse(call.arguments, nullptr, false).is_object()) std::abort();
  }
  return shown;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  ParserOptions options;
  const auto tool_formats = tessera::parser::ToolFormatNames();
  const auto reasoning_formats = tessera::parser::ReasoningFormatNames();
  options.tool_format = tool_formats[data[0] % tool_formats.size()];
  options.reasoning_format = reasoning_formats[(data[0] >> 4) % reasoning_formats.size()];
  options.enable_thinking = (data[1] & 1) != 0;
  options.force_nonempty_content = (data[1] & 2) != 0;
  options.parallel_tool_calls = (data[1] & 4) == 0;
  options.fences_are_text = (data[1] & 8) == 0;
  static const auto& schema = *new nlohmann::ordered_json(nlohmann::ordered_json::parse(
      R"({"properties": {"s": {"type": "string"}, "n": {"type": "integer"},
          "o": {"type": ["object", "array", "string", "null"]}, "b": {"type": "boolean"}}})"));
  options.tools = {{"f", schema}, {"ping", nullptr}};
  const auto finish = static_cast<tessera::parser::EngineFinish>(data[2] % 4);
  const std::string_view text(reinterpret_cast<const char*>(data + 3), size - 3);
  const std::string whole = Run(options, text, size, finish);
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{5}}) {
    if (Run(options, text, piece, finish) != whole) {
      std::fprintf(stderr, "pieces of %zu differ\n", piece);
      std::abort();
    }
  }
  return 0;
}

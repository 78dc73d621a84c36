#ifndef TESSERA_SERVICES_CLI_COMMANDS_PARSE_PARSE_COMMAND_H_
#define TESSERA_SERVICES_CLI_COMMANDS_PARSE_PARSE_COMMAND_H_

// `tessera parse`: the reasoning and tool-call parser on JSON lines, alone.

#include <cstdint>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "services/parser/formats/output_parser.h"

namespace tessera::cli {

// Adds the command `parse` to `app`. When it has run, `exit_status` is 0 only if no line failed.
// `app` and `exit_status` must live until the parse of the command line is over.
void AddParseCommand(CLI::App& app, int& exit_status);

struct ParseSettings {
  std::string reasoning_format = "nemotron_v3";
  std::string tool_format = "qwen3_coder";
  bool fences_are_text = true;
  std::optional<uint64_t> stream_seed;  // feed pseudo-random pieces, answer with the deltas
};

// One line: {"id"?, "text", "tools"?, "enable_thinking"?, "tool_choice"?, "parallel_tool_calls"?,
// "force_nonempty_content"?, "finish"? ("stop", "length", "stop_string", "abort")} becomes
//   {"id", "mode": "whole", "message": {"role", "reasoning", "content", "tool_calls"?},
//    "finish_reason"}, or
//   {"id", "mode": "stream", "deltas": [{"reasoning"?, "content"?, "tool_calls"?}],
//    "finish_reason"}.
// Other fields are ignored. Errors: kInvalidArgument naming the field.
absl::StatusOr<nlohmann::ordered_json> ParseLine(const ParseSettings& settings,
                                                 const nlohmann::ordered_json& line);

// The parser's options of such a line. Errors as above.
absl::StatusOr<parser::ParserOptions> ReadParserOptions(const ParseSettings& settings,
                                                        const nlohmann::ordered_json& line);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_PARSE_PARSE_COMMAND_H_

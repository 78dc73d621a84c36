#ifndef TESSERA_SERVICES_CLI_COMMANDS_RENDER_RENDER_COMMAND_H_
#define TESSERA_SERVICES_CLI_COMMANDS_RENDER_RENDER_COMMAND_H_

// `tessera render`: the chat template engine on JSON lines, alone.

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tokenizer/chat_template/chat_template.h"

namespace tessera::cli {

// Adds the command `render` to `app`. When it has run, `exit_status` is 0 only if every line
// rendered. `app` and `exit_status` must live until the parse of the command line is over.
void AddRenderCommand(CLI::App& app, int& exit_status);

// One line: {"template"?, "context"} becomes {"text", "generation_spans"?} (pairs of code points;
// only for templates with a {% generation %} block that ran) or, if the template does not compile
// or render, {"error": {"type", "message", "line"?}}, which sets `failed`. Without "template" the
// one of `preset` is used. Errors: kInvalidArgument naming the field.
absl::StatusOr<nlohmann::ordered_json> RenderLine(const tokenizer::ChatTemplate* preset,
                                                  const tokenizer::RenderClock& clock,
                                                  const nlohmann::ordered_json& line, bool& failed);

// "2025-03-07T14:05:09" (a blank may stand for the T). Errors: kInvalidArgument.
absl::StatusOr<absl::CivilSecond> ParseIsoTime(const std::string& text);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_RENDER_RENDER_COMMAND_H_

#include "services/cli/commands/parse/parse_command.h"

#include <iostream>
#include <memory>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "services/cli/line_filter.h"
#include "services/common/field_error.h"
#include "services/parser/formats/format_registry.h"
#include "services/parser/formats/output_parser.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<bool> BoolField(const Json& line, const char* field, bool absent) {
  const auto found = line.find(field);
  if (found == line.end() || found->is_null()) return absent;
  if (found->is_boolean()) return found->get<bool>();
  return services::InvalidField(
      field, std::string("is of type ") + found->type_name() + "; give true or false");
}

absl::Status ReadTools(const Json& line, parser::ParserOptions* options) {
  const auto tools = line.find("tools");
  if (tools == line.end() || tools->is_null()) return absl::OkStatus();
  if (!tools->is_array()) return services::InvalidField("tools", "is no array; give a list");
  for (size_t i = 0; i < tools->size(); ++i) {
    const std::string field = "tools[" + std::to_string(i) + "]";
    const Json& entry = (*tools)[i];
    if (!entry.is_object()) return services::InvalidField(field, "is no object");
    const auto function = entry.find("function");
    const Json& tool = function == entry.end() ? entry : *function;
    if (!tool.is_object() || !tool.contains("name") || !tool["name"].is_string()) {
      return services::InvalidField(field + ".function.name", "is missing; give a string");
    }
    if (parser::NestsTooDeep(tool)) {
      return services::InvalidField(field, "nests deeper than " +
                                               std::to_string(parser::kSchemaNestingMax) +
                                               " levels; flatten the schema");
    }
    parser::Tool& added = options->tools.emplace_back();
    added.name = tool["name"].get<std::string>();
    if (tool.contains("parameters")) added.parameters = tool["parameters"];
  }
  return absl::OkStatus();
}

absl::Status ReadToolChoice(const Json& line, parser::ParserOptions* options) {
  constexpr std::string_view kRemedy =
      "give \"auto\", \"none\", \"required\" or {\"type\":\"function\",\"function\":{\"name\":…}}";
  const auto choice = line.find("tool_choice");
  if (choice == line.end() || choice->is_null()) return absl::OkStatus();
  if (choice->is_object()) {
    const auto function = choice->find("function");
    if (function == choice->end() || !function->is_object() || !function->contains("name") ||
        !(*function)["name"].is_string()) {
      return services::InvalidField("tool_choice", kRemedy);
    }
    options->tool_choice = parser::ToolChoice::kNamed;
    options->tool_choice_name = (*function)["name"].get<std::string>();
    return absl::OkStatus();
  }
  static constexpr std::pair<std::string_view, parser::ToolChoice> kChoices[] = {
      {"auto", parser::ToolChoice::kAuto},
      {"none", parser::ToolChoice::kNone},
      {"required", parser::ToolChoice::kRequired}};
  for (const auto& [name, value] : kChoices) {
    if (!choice->is_string() || choice->get_ref<const std::string&>() != name) continue;
    options->tool_choice = value;
    return absl::OkStatus();
  }
  return services::InvalidField("tool_choice", kRemedy);
}

absl::StatusOr<parser::EngineFinish> ReadFinish(const Json& line) {
  static constexpr std::pair<std::string_view, parser::EngineFinish> kFinishes[] = {
      {"stop", parser::EngineFinish::kStop},
      {"length", parser::EngineFinish::kLength},
      {"stop_string", parser::EngineFinish::kStopString},
      {"abort", parser::EngineFinish::kAbort}};
  const auto finish = line.find("finish");
  if (finish == line.end() || finish->is_null()) return parser::EngineFinish::kStop;
  for (const auto& [name, value] : kFinishes) {
    if (finish->is_string() && finish->get_ref<const std::string&>() == name) return value;
  }
  return services::InvalidField("finish", "give stop, length, stop_string or abort");
}

// The lengths of the pieces of a stream: mostly a token's, sometimes a byte, sometimes a burst.
size_t PieceBytes(std::mt19937_64& random) {
  const uint64_t draw = random();
  switch (draw % 8) {
    case 0:
      return 1;
    case 1:
      return 1 + (draw >> 8) % 64;
    default:
      return 1 + (draw >> 8) % 8;
  }
}

Json FunctionDelta(const parser::ParserEvent& event) {
  if (event.kind == parser::EventKind::kToolCallBegin) {
    return {{"index", event.call_index},
            {"id", event.id},
            {"type", "function"},
            {"function", {{"name", event.name}, {"arguments", ""}}}};
  }
  return {{"index", event.call_index}, {"function", {{"arguments", event.text}}}};
}

Json DeltasOf(const std::vector<parser::ParserEvent>& events) {
  Json deltas = Json::array();
  for (const parser::ParserEvent& event : events) {
    switch (event.kind) {
      case parser::EventKind::kReasoning:
        deltas.push_back({{"reasoning", event.text}});
        break;
      case parser::EventKind::kContent:
        deltas.push_back({{"content", event.text}});
        break;
      case parser::EventKind::kToolCallBegin:
      case parser::EventKind::kArguments:
        deltas.push_back({{"tool_calls", Json::array({FunctionDelta(event)})}});
        break;
      case parser::EventKind::kToolCallEnd:
      case parser::EventKind::kFinish:
        break;
    }
  }
  return deltas;
}

Json MessageOf(const parser::ParsedMessage& parsed) {
  const auto text_or_null = [](const std::optional<std::string>& text) {
    return text.has_value() ? Json(*text) : Json(nullptr);
  };
  Json message = {{"role", "assistant"},
                  {"reasoning", text_or_null(parsed.reasoning)},
                  {"content", text_or_null(parsed.content)}};
  for (const parser::ParsedToolCall& call : parsed.tool_calls) {
    message["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return message;
}

}  // namespace

absl::StatusOr<parser::ParserOptions> ReadParserOptions(const ParseSettings& settings,
                                                        const Json& line) {
  parser::ParserOptions options;
  options.reasoning_format = settings.reasoning_format;
  options.tool_format = settings.tool_format;
  options.fences_are_text = settings.fences_are_text;
  if (absl::Status s = ReadTools(line, &options); !s.ok()) return s;
  if (absl::Status s = ReadToolChoice(line, &options); !s.ok()) return s;
  const std::pair<const char*, bool*> flags[] = {
      {"enable_thinking", &options.enable_thinking},
      {"parallel_tool_calls", &options.parallel_tool_calls},
      {"force_nonempty_content", &options.force_nonempty_content}};
  for (const auto& [field, value] : flags) {
    const absl::StatusOr<bool> read = BoolField(line, field, *value);
    if (!read.ok()) return read.status();
    *value = *read;
  }
  return options;
}

absl::StatusOr<Json> ParseLine(const ParseSettings& settings, const Json& line) {
  if (!line.is_object()) return absl::InvalidArgumentError("the line is no JSON object");
  const auto text = line.find("text");
  if (text == line.end() || !text->is_string()) {
    return services::InvalidField("text", "is missing; give the model's raw output as a string");
  }
  if (line.contains("id") && line["id"].is_structured()) {
    return services::InvalidField("id", "is a list or an object; give a string or a number");
  }
  const absl::StatusOr<parser::ParserOptions> options = ReadParserOptions(settings, line);
  if (!options.ok()) return options.status();
  const absl::StatusOr<parser::EngineFinish> finish = ReadFinish(line);
  if (!finish.ok()) return finish.status();

  std::mt19937_64 random(settings.stream_seed.value_or(0));
  parser::SeededCallIds ids(settings.stream_seed.value_or(0));
  absl::StatusOr<std::unique_ptr<parser::OutputParser>> machine =
      parser::CreateOutputParser(*options, &ids);
  if (!machine.ok()) return machine.status();

  std::vector<parser::ParserEvent> events;
  std::string_view rest = text->get_ref<const std::string&>();
  while (!rest.empty()) {
    const std::string_view piece =
        settings.stream_seed.has_value() ? rest.substr(0, PieceBytes(random)) : rest;
    (*machine)->Push(piece, &events);
    rest.remove_prefix(piece.size());
  }
  (*machine)->Finish(*finish, &events);

  const parser::ParsedMessage parsed = parser::Assemble(events);
  Json answer;
  if (line.contains("id")) answer["id"] = line["id"];
  if (settings.stream_seed.has_value()) {
    answer["mode"] = "stream";
    answer["deltas"] = DeltasOf(events);
  } else {
    answer["mode"] = "whole";
    answer["message"] = MessageOf(parsed);
  }
  answer["finish_reason"] = std::string(parser::FinishReasonName(parsed.finish_reason));
  return answer;
}

void AddParseCommand(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "parse", "Splits raw model outputs (JSON lines on stdin) into reasoning, content and calls");
  auto settings = std::make_shared<ParseSettings>();
  auto no_fences = std::make_shared<bool>(false);
  command->add_option("--reasoning", settings->reasoning_format, "Reasoning format")
      ->capture_default_str();
  command->add_option("--tools", settings->tool_format, "Tool-call format")->capture_default_str();
  command->add_option("--stream", settings->stream_seed,
                      "Feed the text in pseudo-random pieces of this seed; answer with the deltas");
  command->add_flag("--no-fences", *no_fences,
                    "Parse tool calls inside Markdown code fences as well");
  command->callback([settings, no_fences, &exit_status] {
    settings->fences_are_text = !*no_fences;
    const absl::Status formats =
        parser::CheckFormatNames(settings->reasoning_format, settings->tool_format);
    if (!formats.ok()) {
      std::cerr << "parse: " << formats.message() << '\n';
      exit_status = 2;
      return;
    }
    exit_status = RunLineFilter(std::cin, std::cout,
                                [&](const Json& line) { return ParseLine(*settings, line); });
  });
}

}  // namespace tessera::cli

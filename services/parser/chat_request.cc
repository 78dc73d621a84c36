#include "services/parser/chat_request.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/field_error.h"

namespace tessera::parser {
namespace {

using Json = nlohmann::ordered_json;
using services::InvalidField;

// JSON from outside, with its depth bounded: nlohmann's parser is iterative, but what walks the
// value later (and its destructor) recurses.
constexpr int kJsonDepthMax = 64;

absl::StatusOr<Json> ParseObject(const std::string& text, const std::string& field) {
  bool too_deep = false;
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kJsonDepthMax;
    return !too_deep;
  };
  Json value = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (too_deep) {
    return InvalidField(field, absl::StrCat("is nested more than ", kJsonDepthMax, " levels deep"));
  }
  if (value.is_discarded()) return InvalidField(field, "is not valid JSON");
  if (!value.is_object()) {
    return InvalidField(field, absl::StrCat("is a JSON ", value.type_name(), "; give an object"));
  }
  return value;
}

absl::StatusOr<Tool> ReadTool(const std::string& text, const std::string& field) {
  if (text.size() > kToolDefinitionBytesMax) {
    return InvalidField(
        field, absl::StrCat("has ", text.size(), " bytes; the limit is ", kToolDefinitionBytesMax));
  }
  absl::StatusOr<Json> definition = ParseObject(text, field);
  if (!definition.ok()) return definition.status();
  const bool wrapped = definition->contains("function");
  const Json& function = wrapped ? (*definition)["function"] : *definition;
  const std::string inner = absl::StrCat(field, wrapped ? ".function" : "");
  if (!function.is_object()) return InvalidField(inner, "must be an object");
  if (!function.contains("name") || !function["name"].is_string() ||
      function["name"].get_ref<const std::string&>().empty()) {
    return InvalidField(absl::StrCat(inner, ".name"), "is missing; give the function's name");
  }
  Tool tool;
  tool.name = function["name"].get<std::string>();
  if (function.contains("parameters")) tool.parameters = function["parameters"];
  if (!tool.parameters.is_null() && !tool.parameters.is_object()) {
    return InvalidField(absl::StrCat(inner, ".parameters"), "must be a JSON schema, an object");
  }
  return tool;
}

absl::Status ReadToolChoice(const v1::ToolChoice& choice, ParserOptions& options) {
  switch (choice.mode()) {
    case v1::TOOL_CHOICE_MODE_UNSPECIFIED:
    case v1::TOOL_CHOICE_MODE_AUTO:
      options.tool_choice = ToolChoice::kAuto;
      return absl::OkStatus();
    case v1::TOOL_CHOICE_MODE_NONE:
      options.tool_choice = ToolChoice::kNone;
      return absl::OkStatus();
    case v1::TOOL_CHOICE_MODE_REQUIRED:
      options.tool_choice = ToolChoice::kRequired;
      return absl::OkStatus();
    case v1::TOOL_CHOICE_MODE_FUNCTION:
      options.tool_choice = ToolChoice::kNamed;
      options.tool_choice_name = choice.function_name();
      return absl::OkStatus();
    default:
      return InvalidField("tool_choice", absl::StrCat("mode ", choice.mode(), " is unknown"));
  }
}

absl::StatusOr<Json> EffortKwargs(const std::string& effort) {
  Json kwargs = Json::object();
  if (effort == "none") {
    kwargs["enable_thinking"] = false;
  } else if (effort == "minimal" || effort == "low") {
    kwargs["low_effort"] = true;
  } else if (effort != "medium" && effort != "high" && effort != "xhigh") {
    return InvalidField(
        "reasoning_effort",
        absl::StrCat("is \"", effort, "\"; give none, minimal, low, medium or high"));
  }
  return kwargs;
}

bool Flag(const Json& kwargs, const char* name, bool otherwise) {
  const auto found = kwargs.find(name);
  if (found == kwargs.end() || !found->is_boolean()) return otherwise;
  return found->get<bool>();
}

// The request's variables over those that reasoning_effort stands for.
absl::StatusOr<Json> RequestKwargs(const v1::ChatOptions& options) {
  Json kwargs = Json::object();
  if (options.has_reasoning_effort()) {
    absl::StatusOr<Json> effort = EffortKwargs(options.reasoning_effort());
    if (!effort.ok()) return effort.status();
    kwargs = *std::move(effort);
  }
  const std::string& text = options.chat().chat_template_kwargs_json();
  if (text.empty()) return kwargs;
  absl::StatusOr<Json> own = ParseObject(text, "chat_template_kwargs");
  if (!own.ok()) return own.status();
  kwargs.update(*own);
  return kwargs;
}

}  // namespace

absl::StatusOr<std::vector<Tool>> ReadTools(
    const google::protobuf::RepeatedPtrField<tokenizer::v1::Tool>& tools) {
  if (static_cast<size_t>(tools.size()) > kToolsMax) {
    return InvalidField("tools",
                        absl::StrCat("has ", tools.size(), " entries; the limit is ", kToolsMax));
  }
  std::vector<Tool> read;
  read.reserve(tools.size());
  for (int i = 0; i < tools.size(); ++i) {
    absl::StatusOr<Tool> tool =
        ReadTool(tools[i].definition_json(), absl::StrCat("tools[", i, "]"));
    if (!tool.ok()) return tool.status();
    read.push_back(*std::move(tool));
  }
  return read;
}

absl::StatusOr<ChatPlan> PlanChat(const v1::ChatOptions& options, const ModelFacts& facts) {
  ChatPlan plan;
  plan.choices = options.sampling().has_n() ? options.sampling().n() : 1;
  if (plan.choices < 1 || plan.choices > kChoicesMax) {
    return InvalidField("n", absl::StrCat("is ", plan.choices, "; give 1 to ", kChoicesMax));
  }
  if (options.chat().messages().empty()) {
    return InvalidField("messages", "is empty; give at least one message");
  }
  absl::StatusOr<std::vector<Tool>> tools = ReadTools(options.chat().tools());
  if (!tools.ok()) return tools.status();
  plan.options.tools = *std::move(tools);
  if (absl::Status read = ReadToolChoice(options.tool_choice(), plan.options); !read.ok()) {
    return read;
  }
  absl::StatusOr<Json> kwargs = RequestKwargs(options);
  if (!kwargs.ok()) return kwargs.status();

  Json merged = facts.default_kwargs;
  merged.update(*kwargs);
  plan.options.reasoning_format = facts.reasoning_format;
  plan.options.tool_format = facts.tool_format;
  // A continued message is content already: its reasoning stands before it in the prompt.
  plan.options.enable_thinking = Flag(merged, "enable_thinking", true) &&
                                 !options.chat().continue_final_message() &&
                                 facts.reasoning_format != "none";
  plan.options.force_nonempty_content = Flag(merged, "force_nonempty_content", false);
  plan.options.parallel_tool_calls =
      !options.has_parallel_tool_calls() || options.parallel_tool_calls();
  plan.include_reasoning = !options.has_include_reasoning() || options.include_reasoning();
  plan.logprobs = options.sampling().has_logprobs();

  tokenizer::v1::GenerateRequest& generate = plan.generate;
  generate.set_request_id(options.request_id());
  generate.set_model(options.model());
  *generate.mutable_chat() = options.chat();
  generate.mutable_chat()->set_chat_template_kwargs_json(kwargs->dump());
  *generate.mutable_sampling() = options.sampling();
  *generate.mutable_stop() = options.stop();
  if (options.has_include_stop_str_in_output()) {
    generate.set_include_stop_str_in_output(options.include_stop_str_in_output());
  }
  generate.set_priority(options.priority());
  return plan;
}

}  // namespace tessera::parser

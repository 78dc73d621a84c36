#include "services/gateway/chat_request.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tessera::gateway {
namespace {

using nlohmann::ordered_json;

// Counts the text of the conversation against kPromptBytesMax.
class TextBudget {
 public:
  void Take(size_t bytes) { bytes_ += bytes; }
  void Check(JsonFields& fields) const {
    if (bytes_ <= kPromptBytesMax) return;
    fields.Fail("messages", absl::StrCat("hold ", bytes_, " bytes of text; the limit is ",
                                         kPromptBytesMax, "; shorten the conversation"));
  }

 private:
  size_t bytes_ = 0;
};

void ReadContent(JsonFields& fields, TextBudget& budget, tokenizer::v1::Message& message) {
  const ordered_json* const content = fields.Find("content");
  if (content == nullptr) return;
  if (content->is_string()) {
    message.set_text(content->get<std::string>());
    budget.Take(message.text().size());
    return;
  }
  if (!content->is_array()) {
    fields.Fail("content", absl::StrCat("must be a string or an array of parts, not ",
                                        std::string(KindOf(*content))));
    return;
  }
  const ordered_json* const parts = fields.Array("content", kContentPartsMax);
  if (parts == nullptr) return;
  message.mutable_parts();  // an empty list is not null
  for (size_t i = 0; i < parts->size(); ++i) {
    const std::string name = absl::StrCat("content[", i, "]");
    const ordered_json& part = (*parts)[i];
    tokenizer::v1::ContentPart& out = *message.mutable_parts()->add_parts();
    if (part.is_string()) {
      out.set_text(part.get<std::string>());
    } else if (!part.is_object()) {
      fields.Fail(name, "must be an object");
      return;
    } else {
      JsonFields inner(part, absl::StrCat(fields.prefix(), name, "."));
      const std::string type = inner.String("type").value_or("text");
      if (type == "text" || type == "input_text" || type == "output_text") {
        auto text = inner.String("text");
        if (inner.status().ok() && !text.has_value()) inner.Fail("text", "is missing");
        out.set_text(std::move(text).value_or(""));
      } else {
        inner.Fail("type", absl::StrCat("is \"", type.substr(0, 64),
                                        "\"; this model reads text parts only"));
      }
      fields.Fail(inner.status());
    }
    budget.Take(out.text().size());
  }
}

void ReadToolCalls(JsonFields& fields, TextBudget& budget, tokenizer::v1::Message& message) {
  const ordered_json* const calls = fields.Array("tool_calls", kToolCallsPerMessageMax);
  if (calls == nullptr) return;
  for (size_t i = 0; i < calls->size(); ++i) {
    const std::string name = absl::StrCat("tool_calls[", i, "]");
    if (!(*calls)[i].is_object()) {
      fields.Fail(name, "must be an object");
      return;
    }
    JsonFields call((*calls)[i], absl::StrCat(fields.prefix(), name, "."));
    tokenizer::v1::ToolCall& out = *message.add_tool_calls();
    out.set_id(call.String("id").value_or(""));
    const ordered_json* const function = call.Object("function");
    if (call.status().ok() && function == nullptr) call.Fail("function", "is missing");
    if (function != nullptr) {
      JsonFields inner(*function, absl::StrCat(call.prefix(), "function."));
      out.set_name(inner.String("name").value_or(""));
      if (inner.status().ok() && out.name().empty()) inner.Fail("name", "is missing");
      const ordered_json* const arguments = inner.Find("arguments");
      if (arguments != nullptr && arguments->is_object()) {
        out.set_arguments_json(arguments->dump());
      } else {
        out.set_arguments_json(inner.String("arguments").value_or(""));
      }
      call.Fail(inner.status());
    }
    budget.Take(out.name().size() + out.arguments_json().size());
    fields.Fail(call.status());
  }
}

void ReadMessage(JsonFields& fields, TextBudget& budget, tokenizer::v1::Message& message) {
  const std::optional<std::string> role = fields.String("role");
  if (fields.status().ok() && (!role.has_value() || role->empty())) {
    fields.Fail("role", "is missing; give \"system\", \"user\", \"assistant\" or \"tool\"");
    return;
  }
  message.set_role(role.value_or(""));
  ReadContent(fields, budget, message);
  if (auto name = fields.String("name")) message.set_name(*std::move(name));
  // `reasoning` is vLLM's present name, `reasoning_content` the older one.
  for (const char* const key : {"reasoning_content", "reasoning"}) {
    if (auto reasoning = fields.String(key)) message.set_reasoning(*std::move(reasoning));
  }
  budget.Take(message.reasoning().size());
  ReadToolCalls(fields, budget, message);
  if (auto id = fields.String("tool_call_id")) message.set_tool_call_id(*std::move(id));
}

void ReadMessages(JsonFields& fields, tokenizer::v1::ChatPrompt& chat) {
  const ordered_json* const messages = fields.Array("messages", kMessagesMax);
  if (!fields.status().ok()) return;
  if (messages == nullptr || messages->empty()) {
    fields.Fail("messages", messages == nullptr ? "is missing; give an array of messages"
                                                : "is empty; give at least one message");
    return;
  }
  TextBudget budget;
  chat.mutable_messages()->Reserve(static_cast<int>(messages->size()));
  for (size_t i = 0; i < messages->size(); ++i) {
    const std::string name = absl::StrCat("messages[", i, "]");
    if (!(*messages)[i].is_object()) {
      fields.Fail(name, "must be an object");
      return;
    }
    JsonFields message((*messages)[i], name + ".");
    ReadMessage(message, budget, *chat.add_messages());
    fields.Fail(message.status());
    if (!fields.status().ok()) return;
  }
  budget.Check(fields);
}

// The name that a tool definition declares, or "".
std::string ToolName(const ordered_json& tool) {
  const auto function = tool.find("function");
  const ordered_json& body = function != tool.end() && function->is_object() ? *function : tool;
  const auto name = body.find("name");
  return name != body.end() && name->is_string() ? name->get<std::string>() : "";
}

void ReadToolChoice(JsonFields& fields, const ordered_json* tools, parser::v1::ToolChoice& choice) {
  const ordered_json* const value = fields.Find("tool_choice");
  if (value == nullptr) return;
  if (value->is_string()) {
    const auto& mode = value->get_ref<const std::string&>();
    if (mode == "auto") {
      choice.set_mode(parser::v1::TOOL_CHOICE_MODE_AUTO);
    } else if (mode == "none") {
      choice.set_mode(parser::v1::TOOL_CHOICE_MODE_NONE);
    } else if (mode == "required") {
      choice.set_mode(parser::v1::TOOL_CHOICE_MODE_REQUIRED);
    } else {
      fields.Fail("tool_choice", absl::StrCat("is \"", mode.substr(0, 64),
                                              "\"; give \"auto\", \"none\", \"required\" or "
                                              "{\"type\":\"function\",\"function\":{\"name\"}}"));
    }
    if (choice.mode() == parser::v1::TOOL_CHOICE_MODE_REQUIRED && tools == nullptr) {
      fields.Fail("tool_choice", "is \"required\", but no tools are given");
    }
    return;
  }
  const ordered_json* const object = fields.Object("tool_choice");
  if (object == nullptr) return;
  JsonFields outer(*object, "tool_choice.");
  const ordered_json* const function = outer.Object("function");
  if (function == nullptr) {
    outer.Fail("function", "is missing");
    fields.Fail(outer.status());
    return;
  }
  JsonFields inner(*function, "tool_choice.function.");
  const std::string name = inner.String("name").value_or("");
  bool declared = false;
  if (tools != nullptr) {
    for (const ordered_json& tool : *tools) declared = declared || ToolName(tool) == name;
  }
  if (name.empty()) inner.Fail("name", "is missing");
  if (!declared) {
    inner.Fail("name", absl::StrCat("is \"", name.substr(0, 64), "\", which no tool declares"));
  }
  choice.set_mode(parser::v1::TOOL_CHOICE_MODE_FUNCTION);
  choice.set_function_name(name);
  fields.Fail(inner.status());
}

void ReadTemplateFields(JsonFields& fields, std::string_view body,
                        tokenizer::v1::ChatPrompt& chat) {
  if (const ordered_json* const kwargs = fields.Object("chat_template_kwargs")) {
    const std::string_view raw = RawMember(body, "chat_template_kwargs");
    chat.set_chat_template_kwargs_json(raw.empty() ? kwargs->dump() : std::string(raw));
  }
  if (const ordered_json* const documents = fields.Array("documents", kDocumentsMax)) {
    for (size_t i = 0; i < documents->size(); ++i) {
      if (!(*documents)[i].is_object()) {
        fields.Fail(absl::StrCat("documents[", i, "]"), "must be an object");
        return;
      }
      chat.add_documents_json((*documents)[i].dump());
    }
  }
  if (auto open = fields.Bool("add_generation_prompt")) chat.set_add_generation_prompt(*open);
  if (auto go_on = fields.Bool("continue_final_message")) chat.set_continue_final_message(*go_on);
  if (chat.add_generation_prompt() && chat.continue_final_message()) {
    fields.Fail("continue_final_message", "is true together with add_generation_prompt");
  }
  if (auto text = fields.String("chat_template")) chat.set_chat_template(*std::move(text));
}

void ReadLogprobs(JsonFields& fields, engine::v1::SamplingParams& sampling) {
  const bool wanted = fields.Bool("logprobs").value_or(false);
  const std::optional<int64_t> top = fields.Integer("top_logprobs", 0, 20);
  if (wanted) {
    sampling.set_logprobs(static_cast<uint32_t>(top.value_or(0)));
  } else if (top.value_or(0) > 0) {
    fields.Fail("top_logprobs", "needs \"logprobs\": true");
  }
}

// Fields that would change the answer and that nothing here obeys: refusing is better than an
// answer that ignores them.
void RefuseUnsupported(JsonFields& fields) {
  if (const ordered_json* const format = fields.Object("response_format")) {
    JsonFields inner(*format, "response_format.");
    const std::string type = inner.String("type").value_or("text");
    if (type != "text") {
      inner.Fail("type", absl::StrCat("is \"", type.substr(0, 64),
                                      "\"; only \"text\" is supported so far"));
    }
    fields.Fail(inner.status());
  }
  for (const char* const key : {"functions", "function_call"}) {
    if (fields.Find(key) != nullptr) fields.Fail(key, "is no longer supported; use tools");
  }
}

}  // namespace

void ReadTools(JsonFields& fields, std::string_view body,
               google::protobuf::RepeatedPtrField<tokenizer::v1::Tool>& tools) {
  const ordered_json* const list = fields.Array("tools", kToolsMax);
  if (list == nullptr) return;
  const std::vector<std::string_view> raw = SplitJson(RawMember(body, "tools"));
  for (size_t i = 0; i < list->size(); ++i) {
    const ordered_json& tool = (*list)[i];
    if (!tool.is_object()) {
      fields.Fail(absl::StrCat("tools[", i, "]"), "must be an object");
      return;
    }
    if (ToolName(tool).empty()) {
      fields.Fail(absl::StrCat("tools[", i, "].function.name"), "is missing");
      return;
    }
    tools.Add()->set_definition_json(raw.size() == list->size() ? std::string(raw[i])
                                                                : tool.dump());
  }
}

absl::StatusOr<ChatCall> ReadChatRequest(std::string_view body) {
  const absl::StatusOr<ordered_json> root = ParseJsonBody(body);
  if (!root.ok()) return root.status();
  ChatCall call;
  parser::v1::ChatOptions& options = call.options;
  JsonFields fields(*root, "");
  options.set_model(fields.String("model").value_or(""));
  ReadMessages(fields, *options.mutable_chat());
  ReadTools(fields, body, *options.mutable_chat()->mutable_tools());
  const ordered_json* const tools = fields.Array("tools", kToolsMax);
  ReadToolChoice(fields, tools != nullptr && !tools->empty() ? tools : nullptr,
                 *options.mutable_tool_choice());
  ReadTemplateFields(fields, body, *options.mutable_chat());
  ReadSampling(fields, *options.mutable_sampling());
  ReadLogprobs(fields, *options.mutable_sampling());
  ReadStop(fields, *options.mutable_stop());
  if (const auto keep = fields.Bool("include_stop_str_in_output")) {
    options.set_include_stop_str_in_output(*keep);
  }
  if (const auto many = fields.Bool("parallel_tool_calls")) options.set_parallel_tool_calls(*many);
  if (const auto show = fields.Bool("include_reasoning")) options.set_include_reasoning(*show);
  if (auto effort = fields.String("reasoning_effort")) {
    options.set_reasoning_effort(*std::move(effort));
  }
  if (const auto priority = fields.Integer("priority", INT32_MIN, INT32_MAX)) {
    options.set_priority(static_cast<int32_t>(*priority));
  }
  call.stream = ReadStreamOptions(fields);
  RefuseUnsupported(fields);
  if (!fields.status().ok()) return fields.status();
  return call;
}

}  // namespace tessera::gateway

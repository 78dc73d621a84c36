#include "tokenizer/chat_template/chat_prompt.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace tessera::tokenizer {
namespace {

using Json = nlohmann::ordered_json;

// Nesting of a tool call's arguments; what walks them later recurses.
constexpr int kArgumentsDepthMax = 64;

absl::Status Invalid(const std::string& field, const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", message));
  status.SetPayload(kFieldPayloadUrl, absl::Cord(field));
  return status;
}

absl::StatusOr<Json> DecodeArguments(const std::variant<std::string, Json>& arguments,
                                     const std::string& field) {
  if (const Json* value = std::get_if<Json>(&arguments)) {
    if (value->is_null()) return Json::object();
    if (!value->is_object()) {
      return Invalid(field, absl::StrCat("is a JSON ", value->type_name(), "; give an object"));
    }
    return *value;
  }
  const std::string& text = std::get<std::string>(arguments);
  if (absl::StripAsciiWhitespace(text).empty()) return Json::object();
  bool too_deep = false;
  const Json value = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > kArgumentsDepthMax;
        return !too_deep;
      },
      /*allow_exceptions=*/false);
  if (too_deep) {
    return Invalid(field, absl::StrCat("is nested more than ", kArgumentsDepthMax, " levels deep"));
  }
  if (value.is_discarded()) return Invalid(field, "is not valid JSON");
  if (value.is_null()) return Json::object();
  if (!value.is_object()) {
    return Invalid(field, absl::StrCat("is a JSON ", value.type_name(), "; give an object"));
  }
  return value;
}

absl::StatusOr<Json> ContentOf(const ChatMessage& message, const std::string& field) {
  if (const std::string* text = std::get_if<std::string>(&message.content)) return Json(*text);
  const auto* parts = std::get_if<std::vector<ChatContentPart>>(&message.content);
  if (parts == nullptr) return Json(nullptr);
  std::string joined;
  for (size_t i = 0; i < parts->size(); ++i) {
    if ((*parts)[i].type != "text") {
      return Invalid(absl::StrCat(field, ".content[", i, "].type"),
                     absl::StrCat("is \"", (*parts)[i].type, "\"; this model reads text alone"));
    }
    if (i > 0) joined += '\n';
    joined += (*parts)[i].text;
  }
  return Json(joined);
}

absl::StatusOr<Json> MessageJson(const ChatMessage& message, const std::string& field) {
  if (message.role.empty()) {
    return Invalid(absl::StrCat(field, ".role"),
                   "is missing; give system, user, assistant or tool");
  }
  absl::StatusOr<Json> content = ContentOf(message, field);
  if (!content.ok()) return content.status();
  Json json = {{"role", message.role}, {"content", *std::move(content)}};
  if (message.reasoning.has_value()) json["reasoning_content"] = *message.reasoning;
  if (!message.name.empty()) json["name"] = message.name;
  if (!message.tool_call_id.empty()) json["tool_call_id"] = message.tool_call_id;
  if (message.tool_calls.empty()) return json;
  if (message.role != "assistant") {
    return Invalid(absl::StrCat(field, ".tool_calls"),
                   absl::StrCat("stands in a message of role ", message.role,
                                "; only an assistant calls tools"));
  }
  Json calls = Json::array();
  for (size_t i = 0; i < message.tool_calls.size(); ++i) {
    const ChatToolCall& call = message.tool_calls[i];
    const std::string function = absl::StrCat(field, ".tool_calls[", i, "].function");
    if (call.name.empty()) return Invalid(absl::StrCat(function, ".name"), "is missing");
    absl::StatusOr<Json> arguments =
        DecodeArguments(call.arguments, absl::StrCat(function, ".arguments"));
    if (!arguments.ok()) return arguments.status();
    Json entry = Json::object();
    if (!call.id.empty()) entry["id"] = call.id;
    entry["type"] = "function";
    entry["function"] = {{"name", call.name}, {"arguments", *std::move(arguments)}};
    calls.push_back(std::move(entry));
  }
  json["tool_calls"] = std::move(calls);
  return json;
}

absl::Status CheckObject(const Json& value, const std::string& field) {
  if (value.is_object()) return absl::OkStatus();
  return Invalid(field, absl::StrCat("is a JSON ", value.type_name(), "; give an object"));
}

// Names that a request's own variables must not replace.
constexpr const char* kReserved[] = {"messages", "tools", "documents", "add_generation_prompt"};

// Cuts the text right after the last message's content, and the spans with it.
absl::Status CutAfterLastMessage(const ChatPromptRequest& request, Rendered& rendered) {
  const ChatMessage& last = request.messages.back();
  const std::string field = absl::StrCat("messages[", request.messages.size() - 1, "]");
  const absl::StatusOr<Json> content = ContentOf(last, field);
  if (!content.ok()) return content.status();
  const std::string text =
      content->is_string()
          ? std::string(absl::StripAsciiWhitespace(content->get_ref<const std::string&>()))
          : std::string();
  const size_t at = text.empty() ? std::string::npos : rendered.text.rfind(text);
  if (at == std::string::npos) {
    return Invalid(
        "continue_final_message",
        "the last message's text is empty or not in the prompt, so it cannot be continued");
  }
  const size_t end = at + text.size();
  rendered.text.resize(end);
  while (!rendered.spans.empty() && rendered.spans.back().begin >= end) rendered.spans.pop_back();
  if (!rendered.spans.empty()) rendered.spans.back().end = std::min(rendered.spans.back().end, end);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Json> BuildChatContext(const ChatPromptRequest& request) {
  if (request.messages.empty()) return Invalid("messages", "is empty; give at least one message");
  if (request.messages.size() > kChatMessagesMax) {
    return Invalid("messages", absl::StrCat("has ", request.messages.size(),
                                            " entries; the limit is ", kChatMessagesMax));
  }
  if (request.tools.size() > kChatToolsMax) {
    return Invalid("tools", absl::StrCat("has ", request.tools.size(), " entries; the limit is ",
                                         kChatToolsMax));
  }
  if (request.messages.front().role == "tool") {
    return Invalid("messages[0].role",
                   "is tool; a tool's answer needs the assistant's call before it");
  }
  if (request.continue_final_message && request.messages.back().role != "assistant") {
    return Invalid("continue_final_message",
                   absl::StrCat("the last message is of role ", request.messages.back().role,
                                "; only an assistant's can be continued"));
  }
  if (request.continue_final_message && request.add_generation_prompt) {
    return Invalid("continue_final_message", "cannot be combined with add_generation_prompt");
  }
  Json context = Json::object();
  Json& messages = context["messages"] = Json::array();
  for (size_t i = 0; i < request.messages.size(); ++i) {
    absl::StatusOr<Json> message =
        MessageJson(request.messages[i], absl::StrCat("messages[", i, "]"));
    if (!message.ok()) return message.status();
    messages.push_back(*std::move(message));
  }
  for (const auto& [name, list] :
       {std::pair{"tools", &request.tools}, std::pair{"documents", &request.documents}}) {
    context[name] = nullptr;
    if (list->empty()) continue;
    context[name] = Json::array();
    for (size_t i = 0; i < list->size(); ++i) {
      if (absl::Status checked = CheckObject((*list)[i], absl::StrCat(name, "[", i, "]"));
          !checked.ok()) {
        return checked;
      }
      context[name].push_back((*list)[i]);
    }
  }
  context["add_generation_prompt"] = request.add_generation_prompt;
  if (request.special_tokens.is_object()) context.update(request.special_tokens);
  if (request.chat_template_kwargs.is_null()) return context;
  if (absl::Status checked = CheckObject(request.chat_template_kwargs, "chat_template_kwargs");
      !checked.ok()) {
    return checked;
  }
  for (const auto& [key, value] : request.chat_template_kwargs.items()) {
    if (std::find(std::begin(kReserved), std::end(kReserved), key) != std::end(kReserved)) {
      return Invalid(absl::StrCat("chat_template_kwargs.", key),
                     "is a field of the request itself; set it there");
    }
    context[key] = value;
  }
  return context;
}

absl::StatusOr<Rendered> RenderChat(const ChatTemplate& chat_template,
                                    const ChatPromptRequest& request, const RenderLimits& limits,
                                    const RenderClock& clock) {
  const absl::StatusOr<Json> context = BuildChatContext(request);
  if (!context.ok()) return context.status();
  absl::StatusOr<Rendered> rendered = chat_template.Render(*context, limits, clock);
  if (!rendered.ok() || !request.continue_final_message) return rendered;
  if (absl::Status cut = CutAfterLastMessage(request, *rendered); !cut.ok()) return cut;
  return rendered;
}

std::vector<std::string> IgnoredKwargs(const ChatTemplate& chat_template,
                                       const ChatPromptRequest& request) {
  std::vector<std::string> ignored;
  if (!request.chat_template_kwargs.is_object()) return ignored;
  for (const auto& [key, value] : request.chat_template_kwargs.items()) {
    if (!chat_template.Reads(key)) ignored.push_back(key);
  }
  return ignored;
}

}  // namespace tessera::tokenizer

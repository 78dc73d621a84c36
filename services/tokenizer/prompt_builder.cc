#include "services/tokenizer/prompt_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "services/common/field_error.h"
#include "services/common/status_map.h"
#include "tokenizer/chat_template/chat_prompt.h"

namespace tessera::services {
namespace {

using tessera::tokenizer::AddedTokens;
using tessera::tokenizer::ChatContentPart;
using tessera::tokenizer::ChatMessage;
using tessera::tokenizer::ChatPromptRequest;
using tessera::tokenizer::ChatTemplate;
using tessera::tokenizer::Rendered;
using tessera::tokenizer::Segment;
using tessera::tokenizer::TextSpan;
using tessera::tokenizer::TokenSpan;

size_t ContentBytes(const tokenizer::v1::Message& message) {
  size_t bytes = message.text().size();
  for (const tokenizer::v1::ContentPart& part : message.parts().parts()) {
    bytes += part.text().size();
  }
  return bytes;
}

absl::Status TooManyBytes(std::string_view field, size_t bytes) {
  return WithReason(
      InvalidField(field, absl::StrCat("holds ", bytes, " bytes of text; the limit of a prompt is ",
                                       kPromptBytesMax, "; shorten it")),
      "PROMPT_TOO_LONG");
}

// Bytes, depth and keys of a JSON text, counted before a tree is built.
absl::Status CheckJsonShape(std::string_view text, std::string_view field) {
  if (text.size() > kJsonFieldBytesMax) {
    return InvalidField(field, absl::StrCat("has ", text.size(), " bytes of JSON; the limit is ",
                                            kJsonFieldBytesMax));
  }
  size_t depth = 0;
  size_t keys = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kJsonFieldDepthMax) {
        return InvalidField(field, absl::StrCat("is nested deeper than ", kJsonFieldDepthMax,
                                                " levels, the limit"));
      }
    } else if (c == ']' || c == '}') {
      if (depth > 0) --depth;
    } else if (c == ':' && ++keys > kJsonFieldKeysMax) {
      return InvalidField(field,
                          absl::StrCat("has more than ", kJsonFieldKeysMax, " keys, the limit"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ChatMessage> FromProto(const tokenizer::v1::Message& message, size_t index) {
  ChatMessage out;
  out.role = message.role();
  if (message.has_text()) {
    out.content = message.text();
  } else if (message.has_parts()) {
    std::vector<ChatContentPart> parts;
    for (const tokenizer::v1::ContentPart& part : message.parts().parts()) {
      if (part.has_text()) {
        parts.push_back({"text", part.text()});
      } else {
        parts.push_back({part.unsupported_type(), ""});
      }
    }
    out.content = std::move(parts);
  }
  if (message.has_reasoning()) out.reasoning = message.reasoning();
  for (int k = 0; k < message.tool_calls_size(); ++k) {
    const tokenizer::v1::ToolCall& call = message.tool_calls(k);
    absl::Status status = CheckJsonShape(
        call.arguments_json(), absl::StrCat("messages[", index, "].tool_calls[", k, "].arguments"));
    if (!status.ok()) return status;
    out.tool_calls.push_back({call.id(), call.name(), call.arguments_json()});
  }
  out.tool_call_id = message.tool_call_id();
  out.name = message.name();
  return out;
}

absl::StatusOr<ChatPromptRequest> FromProto(const tokenizer::v1::ChatPrompt& chat,
                                            const PromptOptions& options, const TextModel& model) {
  ChatPromptRequest request;
  if (chat.messages().empty()) {
    return InvalidField("messages", "is empty; give at least one message");
  }
  request.messages.reserve(chat.messages_size());
  for (int i = 0; i < chat.messages_size(); ++i) {
    absl::StatusOr<ChatMessage> message = FromProto(chat.messages(i), i);
    if (!message.ok()) return message.status();
    request.messages.push_back(*std::move(message));
  }
  for (int i = 0; i < chat.tools_size(); ++i) {
    absl::StatusOr<nlohmann::ordered_json> tool =
        ParseJsonField(chat.tools(i).definition_json(), absl::StrCat("tools[", i, "]"));
    if (!tool.ok()) return tool.status();
    request.tools.push_back(*std::move(tool));
  }
  for (int i = 0; i < chat.documents_json_size(); ++i) {
    absl::StatusOr<nlohmann::ordered_json> document =
        ParseJsonField(chat.documents_json(i), absl::StrCat("documents[", i, "]"));
    if (!document.ok()) return document.status();
    request.documents.push_back(*std::move(document));
  }
  request.chat_template_kwargs = options.default_chat_template_kwargs;
  if (!chat.chat_template_kwargs_json().empty()) {
    absl::StatusOr<nlohmann::ordered_json> kwargs =
        ParseJsonField(chat.chat_template_kwargs_json(), "chat_template_kwargs");
    if (!kwargs.ok()) return kwargs.status();
    if (!kwargs->is_object() && !kwargs->is_null()) {
      return InvalidField("chat_template_kwargs",
                          absl::StrCat("is ", kwargs->type_name(), "; give a JSON object"));
    }
    if (kwargs->is_object()) {
      for (auto& [key, value] : kwargs->items()) request.chat_template_kwargs[key] = value;
    }
  }
  request.special_tokens = model.special_tokens;
  request.add_generation_prompt =
      chat.has_add_generation_prompt() ? chat.add_generation_prompt() : true;
  request.continue_final_message = chat.continue_final_message();
  if (request.continue_final_message && chat.has_add_generation_prompt() &&
      chat.add_generation_prompt()) {
    return InvalidField("continue_final_message",
                        "and add_generation_prompt are both true; choose one");
  }
  if (request.continue_final_message) request.add_generation_prompt = false;
  return request;
}

// Whether an added token took bytes that a caller wrote. Both lists are in order.
bool ContextSpellsAddedToken(const std::vector<uint32_t>& ids, const std::vector<TokenSpan>& spans,
                             const std::vector<TextSpan>& sources, const TextModel& model) {
  size_t source = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!model.added_ids.contains(ids[i])) continue;
    while (source < sources.size() && sources[source].end <= spans[i].begin) ++source;
    for (size_t s = source; s < sources.size() && sources[s].begin < spans[i].end; ++s) {
      if (sources[s].from_context) return true;
    }
  }
  return false;
}

}  // namespace

PromptBuilder::PromptBuilder(std::shared_ptr<const TextModel> model, PromptOptions options,
                             const Clock& clock)
    : model_(std::move(model)), options_(std::move(options)), clock_(clock) {}

size_t TextBytes(const tokenizer::v1::ChatPrompt& chat) {
  size_t bytes = chat.chat_template_kwargs_json().size() + chat.chat_template().size();
  for (const tokenizer::v1::Message& message : chat.messages()) {
    bytes += ContentBytes(message) + message.reasoning().size() + message.role().size();
    for (const tokenizer::v1::ToolCall& call : message.tool_calls()) {
      bytes += call.arguments_json().size() + call.name().size();
    }
  }
  for (const tokenizer::v1::Tool& tool : chat.tools()) bytes += tool.definition_json().size();
  for (const std::string& document : chat.documents_json()) bytes += document.size();
  return bytes;
}

absl::Status PromptBuilder::CheckBytes(size_t bytes, std::string_view field,
                                       uint32_t context_tokens_max) const {
  if (bytes > kPromptBytesMax) return TooManyBytes(field, bytes);
  if (context_tokens_max == 0) return absl::OkStatus();
  const size_t bytes_at_most = size_t{context_tokens_max} * model_->token_bytes_longest;
  if (bytes <= bytes_at_most) return absl::OkStatus();
  return WithReason(
      FieldError(absl::StatusCode::kOutOfRange, field,
                 absl::StrCat("holds ", bytes, " bytes of text, more than the model's context of ",
                              context_tokens_max, " tokens can hold; shorten it")),
      "PROMPT_TOO_LONG");
}

absl::Status CheckPromptTokens(size_t tokens, std::string_view field, uint32_t context_tokens_max) {
  if (tokens == 0) return InvalidField(field, "gives no tokens; give at least one");
  if (context_tokens_max == 0 || tokens < context_tokens_max) return absl::OkStatus();
  return WithReason(
      FieldError(
          absl::StatusCode::kOutOfRange, field,
          absl::StrCat("has ", tokens, " tokens; the model's context is ", context_tokens_max,
                       " tokens, of which one must be left for the answer; shorten it")),
      "PROMPT_TOO_LONG");
}

absl::StatusOr<Prompt> PromptBuilder::FromChat(const tokenizer::v1::ChatPrompt& chat,
                                               uint32_t context_tokens_max) const {
  // Bytes first: nothing else is looked at in a prompt that is too long.
  for (int i = 0; i < chat.messages_size(); ++i) {
    const size_t bytes = ContentBytes(chat.messages(i));
    if (bytes > kPromptBytesMax) {
      return TooManyBytes(absl::StrCat("messages[", i, "].content"), bytes);
    }
  }
  if (const size_t bytes = TextBytes(chat); bytes > kPromptBytesMax) {
    return TooManyBytes("messages", bytes);
  }
  if (model_->templates == nullptr) {
    return FieldError(absl::StatusCode::kFailedPrecondition, "messages",
                      "cannot be rendered: the model has no chat template; send a text prompt");
  }
  absl::StatusOr<ChatPromptRequest> request = FromProto(chat, options_, *model_);
  if (!request.ok()) return request.status();

  absl::StatusOr<std::shared_ptr<const ChatTemplate>> chat_template =
      chat.has_chat_template() ? model_->templates->CallerTemplate(chat.chat_template())
                               : model_->templates->Select(!request->tools.empty());
  if (!chat_template.ok()) return chat_template.status();

  tessera::tokenizer::RenderLimits limits;
  limits.output_bytes_max = kPromptBytesMax;
  const tessera::tokenizer::RenderClock render_clock = {
      .now = absl::ToCivilSecond(clock_.Wall(), absl::LocalTimeZone()),
      .monotonic = [this] { return clock_.Monotonic(); }};
  absl::StatusOr<Rendered> rendered =
      tessera::tokenizer::RenderChat(**chat_template, *request, limits, render_clock);
  if (!rendered.ok()) return rendered.status();

  if (absl::Status status = CheckBytes(rendered->text.size(), "messages", context_tokens_max);
      !status.ok()) {
    return status;
  }
  Prompt prompt;
  if (absl::Status status = Encode(*rendered, prompt); !status.ok()) return status;
  if (absl::Status status = CheckPromptTokens(prompt.ids.size(), "messages", context_tokens_max);
      !status.ok()) {
    return status;
  }
  prompt.ignored_kwargs = tessera::tokenizer::IgnoredKwargs(**chat_template, *request);
  prompt.text = std::move(rendered->text);
  return prompt;
}

absl::Status PromptBuilder::Encode(const Rendered& rendered, Prompt& prompt) const {
  const tessera::tokenizer::Tokenizer& tokenizer = *model_->tokenizer;
  const tessera::tokenizer::EncodeOptions parse = {.added_tokens = AddedTokens::kParse};
  if (!options_.protect_control_tokens) {
    return tokenizer.EncodeTo(rendered.text, parse, prompt.ids);
  }
  // Nearly always no caller spelled a control token; then the joined text gives the same ids as
  // anywhere else. Only otherwise is it encoded in pieces, which may move token borders at seams.
  std::vector<TokenSpan> spans;
  absl::Status status = tokenizer.EncodeTo(rendered.text, parse, prompt.ids, &spans);
  if (status.ok() && !ContextSpellsAddedToken(prompt.ids, spans, rendered.spans, *model_)) {
    return status;
  }
  // A file that normalizes has no spans (kUnimplemented): pieces, to be safe.
  if (!status.ok() && status.code() != absl::StatusCode::kUnimplemented) return status;
  std::vector<Segment> segments;
  segments.reserve(rendered.spans.size());
  for (const TextSpan& span : rendered.spans) {
    segments.push_back({std::string_view(rendered.text).substr(span.begin, span.end - span.begin),
                        span.from_context ? AddedTokens::kAllAsText : AddedTokens::kParse});
  }
  absl::StatusOr<std::vector<uint32_t>> ids = tokenizer.EncodeSegments(segments);
  if (!ids.ok()) return ids.status();
  prompt.control_tokens_protected = true;
  prompt.ids = *std::move(ids);
  return absl::OkStatus();
}

absl::StatusOr<Prompt> PromptBuilder::FromText(std::string_view text, std::string_view field,
                                               uint32_t context_tokens_max) const {
  if (absl::Status status = CheckBytes(text.size(), field, context_tokens_max); !status.ok()) {
    return status;
  }
  Prompt prompt;
  absl::Status status = model_->tokenizer->EncodeTo(text, {.add_special_tokens = true}, prompt.ids);
  if (!status.ok()) {
    return status.code() == absl::StatusCode::kInvalidArgument && !FieldOf(status).has_value()
               ? InvalidField(field, {status.message().data(), status.message().size()})
               : status;
  }
  status = CheckPromptTokens(prompt.ids.size(), field, context_tokens_max);
  if (!status.ok()) return status;
  return prompt;
}

absl::StatusOr<nlohmann::ordered_json> ParseJsonField(std::string_view text,
                                                      std::string_view field) {
  if (absl::Status status = CheckJsonShape(text, field); !status.ok()) return status;
  nlohmann::ordered_json value = nlohmann::ordered_json::parse(text, nullptr, false);
  if (value.is_discarded()) return InvalidField(field, "is not JSON");
  return value;
}

absl::Status CheckStopStrings(const google::protobuf::RepeatedPtrField<std::string>& stop) {
  if (static_cast<size_t>(stop.size()) > tessera::tokenizer::kStopStringsMax) {
    return InvalidField("stop", absl::StrCat("has ", stop.size(), " strings; the limit is ",
                                             tessera::tokenizer::kStopStringsMax));
  }
  for (int i = 0; i < stop.size(); ++i) {
    const size_t bytes = stop[i].size();
    if (bytes == 0 || bytes > tessera::tokenizer::kStopStringBytesMax) {
      return InvalidField(absl::StrCat("stop[", i, "]"),
                          absl::StrCat("has ", bytes, " bytes; give 1 to ",
                                       tessera::tokenizer::kStopStringBytesMax));
    }
  }
  return absl::OkStatus();
}

}  // namespace tessera::services

#include "services/gateway/openai_error.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "services/common/field_error.h"
#include "services/common/status_map.h"
#include "services/gateway/json_text.h"

namespace tessera::gateway {
namespace {

bool StartsWith(const std::string& text, std::string_view prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

std::string WithoutWrappers(std::string field) {
  static constexpr std::string_view kWrappers[] = {"options.", "generate.", "request.", "chat.",
                                                   "sampling."};
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view wrapper : kWrappers) {
      if (!StartsWith(field, wrapper)) continue;
      field.erase(0, wrapper.size());
      again = true;
    }
  }
  return field;
}

std::string ClientField(const std::string& field, Vocabulary vocabulary) {
  if (vocabulary == Vocabulary::kOther) return field;  // has no prompt
  std::string name = WithoutWrappers(field);
  if (StartsWith(name, "messages[")) {
    return absl::StrReplaceAll(name, {{".arguments_json", ".function.arguments"},
                                      {"].name", "].function.name"},
                                      {".text", ".content"},
                                      {".parts.parts", ".content"},
                                      {".parts", ".content"}});
  }
  if (name == "logprobs" && vocabulary == Vocabulary::kChat) return "top_logprobs";
  if (name == "prompt" || name == "text" || name == "tokens" || name == "tokens.ids" ||
      name == "prompt.ids") {
    return vocabulary == Vocabulary::kChat ? "messages" : "prompt";
  }
  return absl::StrReplaceAll(name, {{"prompt.ids[", "prompt["},
                                    {"tokens.ids[", "prompt["},
                                    {".definition_json", ""},
                                    {"documents_json", "documents"},
                                    {"chat_template_kwargs_json", "chat_template_kwargs"},
                                    {"tool_choice.function_name", "tool_choice.function.name"}});
}

// A reply-level name of OpenAI for codes whose reason says nothing.
std::string_view DefaultCode(absl::StatusCode code, bool has_field) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return has_field ? "invalid_value" : "invalid_request";
    case absl::StatusCode::kOutOfRange:
      return "context_length_exceeded";
    case absl::StatusCode::kNotFound:
      return "model_not_found";
    case absl::StatusCode::kUnauthenticated:
      return "invalid_api_key";
    case absl::StatusCode::kPermissionDenied:
      return "permission_denied";
    case absl::StatusCode::kResourceExhausted:
      return "rate_limit_exceeded";
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
      return "service_unavailable";
    case absl::StatusCode::kDeadlineExceeded:
      return "timeout";
    case absl::StatusCode::kCancelled:
      return "cancelled";
    case absl::StatusCode::kUnimplemented:
      return "not_supported";
    default:
      return "internal_error";
  }
}

std::string_view TypeOf(int http_status) {
  switch (http_status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    default:
      return http_status < 500 || http_status == 501 ? "invalid_request_error" : "server_error";
  }
}

std::string Body(std::string_view message, int http_status, const std::optional<std::string>& param,
                 std::string_view code) {
  std::string body = "{\"error\":{\"message\":";
  AppendJsonString(body, message);
  body += ",\"type\":";
  AppendJsonString(body, TypeOf(http_status));
  body += ",\"param\":";
  if (param.has_value()) {
    AppendJsonString(body, *param);
  } else {
    body += "null";
  }
  body += ",\"code\":";
  AppendJsonString(body, code);
  body += "}}";
  return body;
}

// `status` with the field `name` instead of `field`, in the message too.
absl::Status Renamed(const absl::Status& status, const std::optional<std::string>& field,
                     const std::string& name) {
  absl::string_view message = status.message();
  if (field.has_value()) absl::ConsumePrefix(&message, absl::StrCat(*field, ": "));
  absl::Status renamed =
      services::FieldError(status.code(), name, std::string_view(message.data(), message.size()));
  if (const auto reason = services::ReasonOf(status)) {
    renamed = services::WithReason(renamed, *reason);
  }
  if (const auto delay = services::RetryDelayOf(status)) {
    renamed = services::WithRetryDelay(renamed, *delay);
  }
  return renamed;
}

}  // namespace

absl::Status InClientWords(const absl::Status& status, Vocabulary vocabulary) {
  if (status.ok()) return status;
  const std::optional<std::string> field = services::FieldOf(status);
  std::string name;
  if (field.has_value()) {
    name = ClientField(*field, vocabulary);
  } else if (status.code() == absl::StatusCode::kOutOfRange && vocabulary != Vocabulary::kOther) {
    name = vocabulary == Vocabulary::kChat ? "messages" : "prompt";
  } else {
    return status;
  }
  return Renamed(status, field, name);
}

absl::Status InListedPrompt(const absl::Status& status, uint32_t index) {
  const std::optional<std::string> field = services::FieldOf(status);
  const std::string element = absl::StrCat("prompt[", index, "]");
  if (!field.has_value()) {
    return status.code() == absl::StatusCode::kOutOfRange ? Renamed(status, field, element)
                                                          : status;
  }
  const std::string name = ClientField(*field, Vocabulary::kCompletion);
  if (!StartsWith(name, "prompt")) return status;
  return Renamed(status, field, absl::StrCat(element, name.substr(std::strlen("prompt"))));
}

OpenAiError ErrorFor(const absl::Status& status) {
  OpenAiError error;
  error.http_status = services::HttpStatusOf(status.code());
  // Tokens had been made, but this client has seen none of them: it may safely try again.
  if (status.code() == absl::StatusCode::kAborted) error.http_status = 503;
  if (error.http_status == 429 || error.http_status == 503) {
    const absl::Duration delay =
        services::RetryDelayOf(status).value_or(services::kRetryDelayDefault);
    error.retry_after_s = static_cast<int>(
        std::clamp<int64_t>(absl::ToInt64Seconds(absl::Ceil(delay, absl::Seconds(1))), 1, 3600));
  }
  const std::optional<std::string> field = services::FieldOf(status);
  const std::optional<std::string> reason = services::ReasonOf(status);
  const std::string_view usual = DefaultCode(status.code(), field.has_value());
  const absl::string_view message = status.message();
  error.body = Body({message.data(), message.size()}, error.http_status, field,
                    reason.has_value() ? absl::AsciiStrToLower(*reason) : std::string(usual));
  return error;
}

OpenAiError HttpError(int http_status, std::string_view code, std::string_view message) {
  OpenAiError error;
  error.http_status = http_status;
  error.body = Body(message, http_status, std::nullopt, code);
  return error;
}

}  // namespace tessera::gateway

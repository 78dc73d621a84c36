#include "services/cli/commands/chat/conversation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/common/field_error.h"
#include "tokenizer/vocab/utf8.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

bool HasName(const Json& tool) {
  if (!tool.is_object()) return false;
  const auto function = tool.find("function");
  const Json& body = function == tool.end() ? tool : *function;
  return body.is_object() && body.contains("name") && body["name"].is_string() &&
         !body["name"].get_ref<const std::string&>().empty();
}

}  // namespace

absl::StatusOr<std::vector<tokenizer::v1::Tool>> ReadTools(std::string_view json) {
  const Json list = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) {
    return services::InvalidField("--tools", "is no JSON array; give OpenAI's list of tools");
  }
  std::vector<tokenizer::v1::Tool> tools;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!HasName(list[i])) {
      return services::InvalidField(
          "--tools", absl::StrCat("tools[", i, "].function.name is missing; give a string"));
    }
    tools.emplace_back().set_definition_json(list[i].dump());
  }
  return tools;
}

Conversation::Conversation(ChatSettings settings) : settings_(std::move(settings)) { Reset(); }

void Conversation::AddUser(std::string text) {
  question_index_ = messages_.size();
  tokenizer::v1::Message& message = messages_.emplace_back();
  message.set_role("user");
  message.set_text(std::move(text));
}

void Conversation::AddAnswer(const tokenizer::v1::Message& message) {
  messages_.push_back(message);
}

void Conversation::AddToolResult(const tokenizer::v1::ToolCall& call, std::string text) {
  tokenizer::v1::Message& message = messages_.emplace_back();
  message.set_role("tool");
  message.set_tool_call_id(call.id());
  message.set_text(std::move(text));
}

void Conversation::TakeBack() { messages_.resize(question_index_); }

void Conversation::Reset() {
  messages_.clear();
  if (!settings_.system.empty()) {
    tokenizer::v1::Message& message = messages_.emplace_back();
    message.set_role("system");
    message.set_text(settings_.system);
  }
  question_index_ = messages_.size();
}

absl::Status Conversation::CheckText() const {
  for (const tokenizer::v1::Message& message : messages_) {
    const size_t byte = tokenizer::FindInvalidUtf8(message.text());
    if (byte == std::string_view::npos) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the text of the ", message.role(), " is not UTF-8 at byte ", byte));
  }
  return absl::OkStatus();
}

parser::v1::ChatStreamRequest Conversation::Request() const {
  parser::v1::ChatStreamRequest request;
  parser::v1::ChatOptions& options = *request.mutable_options();
  tokenizer::v1::ChatPrompt& chat = *options.mutable_chat();
  chat.mutable_messages()->Assign(messages_.begin(), messages_.end());
  chat.mutable_tools()->Assign(settings_.tools.begin(), settings_.tools.end());
  Json kwargs = Json::object();  // what is not asked for is left to the server's defaults
  if (!settings_.thinking) kwargs["enable_thinking"] = false;
  if (settings_.low_effort) kwargs["low_effort"] = true;
  if (!kwargs.empty()) chat.set_chat_template_kwargs_json(kwargs.dump());
  engine::v1::SamplingParams& sampling = *options.mutable_sampling();
  if (settings_.max_tokens) sampling.set_max_tokens(*settings_.max_tokens);
  if (settings_.temperature) sampling.set_temperature(*settings_.temperature);
  if (settings_.seed) sampling.set_seed(*settings_.seed);
  return request;
}

}  // namespace tessera::cli

#include "services/cli/commands/bench/openai_stream.h"

#include <utility>

namespace tessera::cli {
namespace {

using Json = nlohmann::json;

constexpr size_t kMessageBytesMax = 500;

bool IsText(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() &&
         !found->get_ref<const std::string&>().empty();
}

// Whether an event holds output of the model.
bool HasOutput(const Json& event) {
  const auto choices = event.find("choices");
  if (choices == event.end() || !choices->is_array()) return false;
  for (const Json& choice : *choices) {
    if (!choice.is_object()) continue;
    if (IsText(choice, "text")) return true;
    const auto delta = choice.find("delta");
    if (delta == choice.end() || !delta->is_object()) continue;
    if (IsText(*delta, "content") || IsText(*delta, "reasoning") ||
        IsText(*delta, "reasoning_content")) {
      return true;
    }
    const auto calls = delta->find("tool_calls");
    if (calls != delta->end() && calls->is_array() && !calls->empty()) return true;
  }
  return false;
}

uint32_t CountOf(const Json& usage, const char* key) {
  const auto found = usage.find(key);
  return found != usage.end() && found->is_number_unsigned() ? found->get<uint32_t>() : 0;
}

// OpenAI's {"error": {"message"}}, {"message"}, or the text itself.
std::string MessageOf(const Json& body, std::string_view text) {
  if (body.is_object()) {
    const auto error = body.find("error");
    const Json& holder = error != body.end() && error->is_object() ? *error : body;
    if (IsText(holder, "message")) return holder["message"].get<std::string>();
    if (error != body.end() && error->is_string()) return error->get<std::string>();
  }
  return std::string(text.substr(0, kMessageBytesMax));
}

}  // namespace

uint32_t OpenAiStream::Append(std::string_view bytes) {
  uint32_t tokens = 0;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() > kEventLineBytesMax) {
      Fail("bad stream", "a line of the event stream is too long");
      line_.clear();
    }
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    tokens += TakeLine(line_);
    line_.clear();
  }
  return tokens;
}

TrafficEnd OpenAiStream::End() {
  if (!done_) Fail("cut", "the answer ended without [DONE]");
  // What the last usage said, or nothing if the server never said.
  return end_;
}

uint32_t OpenAiStream::TakeLine(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData) || done_ || !end_.error.empty()) return 0;
  line.remove_prefix(kData.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") {
    done_ = true;
    return 0;
  }
  const Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) {
    Fail("bad stream", "an event is no JSON object");
    return 0;
  }
  if (event.contains("error") && !event["error"].is_null()) {
    Fail("stream error", MessageOf(event, line));
    return 0;
  }
  return TakeEvent(event);
}

uint32_t OpenAiStream::TakeEvent(const Json& event) {
  const auto usage = event.find("usage");
  const bool has_usage = usage != event.end() && usage->is_object();
  const auto choices = event.find("choices");
  const bool has_choices = choices != event.end() && choices->is_array() && !choices->empty();
  if (has_usage) {
    end_.prompt_tokens = CountOf(*usage, "prompt_tokens");
    end_.output_tokens = CountOf(*usage, "completion_tokens");
    running_usage_ = running_usage_ || has_choices;
  }
  uint32_t now = tokens_;
  if (running_usage_) {
    if (has_usage && *end_.output_tokens > tokens_) now = *end_.output_tokens;
  } else if (HasOutput(event)) {
    ++now;
  }
  return now - std::exchange(tokens_, now);
}

void OpenAiStream::Fail(std::string kind, std::string message) {
  if (!end_.error.empty()) return;
  end_.error = std::move(kind);
  end_.message = std::move(message);
}

TrafficEnd HttpFailure(unsigned status, std::string_view body) {
  return {.error = "HTTP " + std::to_string(status),
          .message = MessageOf(Json::parse(body, nullptr, /*allow_exceptions=*/false), body)};
}

}  // namespace tessera::cli

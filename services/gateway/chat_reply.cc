#include "services/gateway/chat_reply.h"

#include <string_view>
#include <utility>

#include "services/gateway/json_text.h"

namespace tessera::gateway {
namespace {

using parser::v1::ChatChoiceEnd;
using parser::v1::ChatDelta;
using parser::v1::Choice;

std::string_view FinishName(parser::v1::FinishReason reason) {
  switch (reason) {
    case parser::v1::FINISH_REASON_LENGTH:
      return "length";
    case parser::v1::FINISH_REASON_TOOL_CALLS:
      return "tool_calls";
    case parser::v1::FINISH_REASON_ABORT:
      return "abort";
    default:
      return "stop";
  }
}

UsageCounts CountsOf(const parser::v1::Usage& usage) {
  return {.prompt_tokens = usage.prompt_tokens(),
          .cached_prompt_tokens = usage.cached_prompt_tokens(),
          .completion_tokens = usage.completion_tokens(),
          .reasoning_tokens = usage.reasoning_tokens()};
}

void AppendCallDelta(std::string& out, const parser::v1::ToolCallDelta& call) {
  out += "{\"index\":";
  AppendJsonInteger(out, call.index());
  if (call.has_id()) {
    out += ",\"id\":";
    AppendJsonString(out, call.id());
    out += ",\"type\":\"function\"";
  }
  out += ",\"function\":{";
  if (call.has_name()) {
    out += "\"name\":";
    AppendJsonString(out, call.name());
    out += ',';
  }
  out += "\"arguments\":";
  AppendJsonString(out, call.arguments_fragment());
  out += "}}";
}

void AppendChoice(std::string& out, const Choice& choice, ReasoningField field, bool logprobs) {
  out += "{\"index\":";
  AppendJsonInteger(out, choice.index());
  out += ",\"message\":{\"role\":\"assistant\",\"content\":";
  if (choice.has_content()) {
    AppendJsonString(out, choice.content());
  } else {
    out += "null";
  }
  AppendReasoning(out, field, choice.has_reasoning() ? &choice.reasoning() : nullptr);
  if (choice.tool_calls_size() > 0) {
    out += ",\"tool_calls\":[";
    for (int i = 0; i < choice.tool_calls_size(); ++i) {
      if (i != 0) out += ',';
      AppendToolCall(out, choice.tool_calls(i));
    }
    out += ']';
  }
  out += "},\"logprobs\":";
  if (logprobs) {
    AppendChatLogprobs(out, choice.logprobs());
  } else {
    out += "null";
  }
  out += ",\"finish_reason\":";
  AppendJsonString(out, FinishName(choice.finish_reason()));
  out += ",\"stop_reason\":";
  AppendStopReason(out, choice);
  out += '}';
}

}  // namespace

void AppendToolCall(std::string& out, const parser::v1::ToolCall& call) {
  out += "{\"id\":";
  AppendJsonString(out, call.id());
  out += ",\"type\":\"function\",\"function\":{\"name\":";
  AppendJsonString(out, call.name());
  out += ",\"arguments\":";
  AppendJsonString(out, call.arguments_json());
  out += "}}";
}

std::string ChatReply(const ReplyHead& head, const parser::v1::ChatResponse& response,
                      ReasoningField reasoning_field, bool logprobs) {
  std::string out;
  AppendHead(out, head, "chat.completion");
  out += ",\"choices\":[";
  for (int i = 0; i < response.choices_size(); ++i) {
    if (i != 0) out += ',';
    AppendChoice(out, response.choices(i), reasoning_field, logprobs);
  }
  out += "],\"usage\":";
  AppendUsage(out, CountsOf(response.usage()));
  out += '}';
  return out;
}

ChatChunks::ChatChunks(ReplyHead head, const Options& options)
    : head_(std::move(head)), options_(options), completion_tokens_(options.choices) {}

void ChatChunks::BeginChunk(std::string& out, uint32_t choice) const {
  out += chunk_begin_;
  out += "{\"index\":";
  AppendJsonInteger(out, choice);
  out += ",\"delta\":{";
}

void ChatChunks::EndChunk(std::string& out, const ChatDelta* delta,
                          const ChatChoiceEnd* end) const {
  out += "},\"logprobs\":";
  if (options_.logprobs && delta != nullptr && delta->logprobs_size() > 0) {
    AppendChatLogprobs(out, delta->logprobs());
  } else {
    out += "null";
  }
  out += ",\"finish_reason\":";
  if (end != nullptr) {
    AppendJsonString(out, FinishName(end->finish_reason()));
    out += ",\"stop_reason\":";
    AppendStopReason(out, *end);
  } else {
    out += "null";
  }
  out += "}]";
  if (options_.stream.continuous_usage) {
    const UsageCounts usage = RunningUsage();
    EndEvent(out, &usage);
  } else {
    EndEvent(out, nullptr);
  }
}

void ChatChunks::EndEvent(std::string& out, const UsageCounts* usage) const {
  if (usage != nullptr) {
    out += ",\"usage\":";
    AppendUsage(out, *usage);
  } else if (options_.stream.include_usage) {
    out += ",\"usage\":null";
  }
  out += "}\n\n";
}

UsageCounts ChatChunks::RunningUsage() const {
  UsageCounts usage{.prompt_tokens = prompt_tokens_, .detailed = false};
  for (const uint32_t tokens : completion_tokens_) usage.completion_tokens += tokens;
  return usage;
}

void ChatChunks::AppendStarted(const parser::v1::ChatStarted& started, std::string& out) {
  head_.model = started.model();
  prompt_tokens_ = started.prompt_tokens();
  chunk_begin_ = "data: ";
  AppendHead(chunk_begin_, head_, "chat.completion.chunk");
  chunk_begin_ += ",\"choices\":[";
  for (uint32_t choice = 0; choice < options_.choices; ++choice) {
    BeginChunk(out, choice);
    out += "\"role\":\"assistant\",\"content\":\"\"";
    EndChunk(out, nullptr, nullptr);
  }
}

void ChatChunks::AppendDelta(const ChatDelta& delta, std::string& out) {
  if (delta.choice_index() < completion_tokens_.size()) {
    completion_tokens_[delta.choice_index()] = delta.completion_tokens();
  }
  const bool says_something = delta.has_reasoning() || delta.has_content() ||
                              delta.tool_calls_size() > 0 ||
                              (options_.logprobs && delta.logprobs_size() > 0);
  if (says_something) {
    BeginChunk(out, delta.choice_index());
    const size_t begin = out.size();
    if (delta.has_reasoning()) {
      AppendReasoning(out, options_.reasoning_field, &delta.reasoning());
    }
    if (delta.has_content()) {
      out += ",\"content\":";
      AppendJsonString(out, delta.content());
    }
    if (delta.tool_calls_size() > 0) {
      out += ",\"tool_calls\":[";
      for (int i = 0; i < delta.tool_calls_size(); ++i) {
        if (i != 0) out += ',';
        AppendCallDelta(out, delta.tool_calls(i));
      }
      out += ']';
    }
    if (out.size() > begin) out.erase(begin, 1);  // the first comma
    EndChunk(out, &delta, nullptr);
  }
  if (delta.has_end()) {
    BeginChunk(out, delta.choice_index());
    EndChunk(out, nullptr, &delta.end());
  }
}

void ChatChunks::AppendFinished(const parser::v1::ChatFinished& finished, std::string& out) {
  if (options_.stream.include_usage) {
    out += chunk_begin_;
    out += ']';
    const UsageCounts usage = CountsOf(finished.usage());
    EndEvent(out, &usage);
  }
  out += kStreamDone;
}

}  // namespace tessera::gateway

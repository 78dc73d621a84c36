#include "services/gateway/completion_reply.h"

#include <string_view>
#include <utility>

#include "services/gateway/json_text.h"

namespace tessera::gateway {
namespace {

constexpr std::string_view kObject = "text_completion";

std::string_view FinishName(engine::v1::FinishReason reason) {
  switch (reason) {
    case engine::v1::FINISH_REASON_LENGTH:
      return "length";
    case engine::v1::FINISH_REASON_ABORT:
      return "abort";
    default:
      return "stop";
  }
}

}  // namespace

CompletionReply::CompletionReply(ReplyHead head, const Options& options)
    : head_(std::move(head)),
      options_(options),
      choices_(size_t{options.prompts} * options.choices_per_prompt) {}

void CompletionReply::OnStarted(const tokenizer::v1::GenerateStarted& started) {
  head_.model = started.model();
  usage_.prompt_tokens += started.prompt_tokens();
}

void CompletionReply::OnDelta(uint32_t prompt, const tokenizer::v1::GenerateDelta& delta,
                              std::string& out) {
  if (delta.choice_index() >= options_.choices_per_prompt) return;  // no peer of ours sends it
  const uint32_t index = prompt * options_.choices_per_prompt + delta.choice_index();
  Choice& choice = choices_[index];
  choice.completion_tokens += static_cast<uint32_t>(delta.tokens_size());
  if (!options_.stream.stream) {
    choice.text += delta.text();
    if (options_.logprobs) choice.tokens.MergeFrom(delta.tokens());
    if (delta.has_end()) choice.end = delta.end();
    return;
  }
  if (delta.text().empty() && !delta.has_end() && !options_.logprobs) return;
  out += "data: ";
  AppendHead(out, head_, kObject);
  out += ",\"choices\":[{\"index\":";
  AppendJsonInteger(out, index);
  out += ",\"text\":";
  AppendJsonString(out, delta.text());
  out += ",\"logprobs\":";
  if (options_.logprobs && delta.tokens_size() > 0) {
    AppendLegacyLogprobs(out, delta.tokens(), choice.text_offset);
  } else {
    out += "null";
  }
  out += ",\"finish_reason\":";
  if (delta.has_end()) {
    AppendJsonString(out, FinishName(delta.end().reason()));
    out += ",\"stop_reason\":";
    AppendStopReason(out, delta.end());
  } else {
    out += "null";
  }
  out += "}]";
  if (options_.stream.continuous_usage) {
    UsageCounts usage{.prompt_tokens = usage_.prompt_tokens, .detailed = false};
    for (const Choice& each : choices_) usage.completion_tokens += each.completion_tokens;
    out += ",\"usage\":";
    AppendUsage(out, usage);
  } else if (options_.stream.include_usage) {
    out += ",\"usage\":null";
  }
  out += "}\n\n";
}

void CompletionReply::OnFinished(const tokenizer::v1::GenerateFinished& finished) {
  usage_.cached_prompt_tokens += finished.usage().cached_prompt_tokens();
  usage_.completion_tokens += finished.usage().completion_tokens();
}

void CompletionReply::AppendEnd(std::string& out) const {
  if (options_.stream.include_usage) {
    out += "data: ";
    AppendHead(out, head_, kObject);
    out += ",\"choices\":[],\"usage\":";
    AppendUsage(out, usage_);
    out += "}\n\n";
  }
  out += kStreamDone;
}

std::string CompletionReply::Whole() const {
  std::string out;
  AppendHead(out, head_, kObject);
  out += ",\"choices\":[";
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    out += i == 0 ? "{\"index\":" : ",{\"index\":";
    AppendJsonInteger(out, static_cast<int64_t>(i));
    out += ",\"text\":";
    AppendJsonString(out, choice.text);
    out += ",\"logprobs\":";
    if (options_.logprobs) {
      uint64_t text_offset = 0;
      AppendLegacyLogprobs(out, choice.tokens, text_offset);
    } else {
      out += "null";
    }
    out += ",\"finish_reason\":";
    AppendJsonString(out, FinishName(choice.end.reason()));
    out += ",\"stop_reason\":";
    AppendStopReason(out, choice.end);
    out += '}';
  }
  out += "],\"usage\":";
  AppendUsage(out, usage_);
  out += '}';
  return out;
}

}  // namespace tessera::gateway

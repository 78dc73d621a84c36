#ifndef TESSERA_SERVICES_GATEWAY_REPLY_FORMAT_H_
#define TESSERA_SERVICES_GATEWAY_REPLY_FORMAT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "google/protobuf/repeated_ptr_field.h"
#include "tessera/tokenizer/v1/tokenizer.pb.h"

namespace tessera::gateway {

// Under which name(s) a client finds the reasoning: vLLM's present one, its older one, or both.
enum class ReasoningField : uint8_t { kBoth, kReasoning, kReasoningContent };

// What all replies to one request say of themselves.
struct ReplyHead {
  std::string id;  // "chatcmpl-..." or "cmpl-..."
  int64_t created_s = 0;
  std::string model;
};

// Token counts as OpenAI clients read them.
struct UsageCounts {
  uint32_t prompt_tokens = 0;
  uint32_t cached_prompt_tokens = 0;
  uint32_t completion_tokens = 0;
  uint32_t reasoning_tokens = 0;
  // Whether the details are known; a running count in a stream has none.
  bool detailed = true;
};

inline constexpr std::string_view kStreamDone = "data: [DONE]\n\n";

// Each appends to `out`.
void AppendHead(std::string& out, const ReplyHead& head, std::string_view object);
void AppendUsage(std::string& out, const UsageCounts& usage);
// ,"reasoning":X,"reasoning_content":X by the field's choice; null for a null pointer.
void AppendReasoning(std::string& out, ReasoningField field, const std::string* reasoning);
// A stop string, else a stop token's id, else null.
template <class End>
void AppendStopReason(std::string& out, const End& end);
// {"content":[{"token","logprob","bytes","top_logprobs"}...]}, chat's form.
void AppendChatLogprobs(std::string& out,
                        const google::protobuf::RepeatedPtrField<tokenizer::v1::TextToken>& tokens);
// {"tokens","token_logprobs","top_logprobs","text_offset"}, the legacy form. `text_offset` is where
// the first token's text begins in the choice's text, in code points; it is moved past the last.
void AppendLegacyLogprobs(
    std::string& out, const google::protobuf::RepeatedPtrField<tokenizer::v1::TextToken>& tokens,
    uint64_t& text_offset);
// An error event of a stream that has begun: `data: {"error":...}`. `body` is an error body.
std::string ErrorEvent(std::string_view body);

void AppendStopReasonValue(std::string& out, const std::string* stop_string, const uint32_t* id);

template <class End>
void AppendStopReason(std::string& out, const End& end) {
  const uint32_t id = end.has_stop_token_id() ? end.stop_token_id() : 0;
  AppendStopReasonValue(out, end.has_stop_string() ? &end.stop_string() : nullptr,
                        end.has_stop_token_id() ? &id : nullptr);
}

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_REPLY_FORMAT_H_

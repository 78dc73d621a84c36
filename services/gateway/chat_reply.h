#ifndef TESSERA_SERVICES_GATEWAY_CHAT_REPLY_H_
#define TESSERA_SERVICES_GATEWAY_CHAT_REPLY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "services/gateway/reply_format.h"
#include "services/gateway/sampling_fields.h"
#include "tessera/parser/v1/parser.pb.h"

namespace tessera::gateway {

// The body of a whole answer ("chat.completion").
std::string ChatReply(const ReplyHead& head, const parser::v1::ChatResponse& response,
                      ReasoningField reasoning_field, bool logprobs);

// Appends a whole call: {"id", "type", "function": {"name", "arguments"}}.
void AppendToolCall(std::string& out, const parser::v1::ToolCall& call);

// Writes the events of a streamed answer ("chat.completion.chunk"), one `data:` line and a blank
// line each:
//   1. for every choice, a chunk with the role and empty content;
//   2. deltas with `reasoning`, `content` or `tool_calls`;
//   3. for every choice, a chunk with an empty delta and its finish_reason;
//   4. with include_usage, a chunk without choices and the usage; then [DONE].
//
// Threading: one thread at a time. Cost: appends to the given buffer only.
class ChatChunks final {
 public:
  struct Options {
    ReasoningField reasoning_field = ReasoningField::kBoth;
    StreamOptions stream;
    bool logprobs = false;
    uint32_t choices = 1;
  };

  ChatChunks(ReplyHead head, const Options& options);

  // Appends the events of one message of the stream.
  void AppendStarted(const parser::v1::ChatStarted& started, std::string& out);
  void AppendDelta(const parser::v1::ChatDelta& delta, std::string& out);
  void AppendFinished(const parser::v1::ChatFinished& finished, std::string& out);

 private:
  void BeginChunk(std::string& out, uint32_t choice) const;
  // Closes the choice (its delta is written) and the event.
  void EndChunk(std::string& out, const parser::v1::ChatDelta* delta,
                const parser::v1::ChatChoiceEnd* end) const;
  void EndEvent(std::string& out, const UsageCounts* usage) const;
  UsageCounts RunningUsage() const;

  ReplyHead head_;
  const Options options_;
  std::string chunk_begin_;  // of every event, up to the choices
  uint32_t prompt_tokens_ = 0;
  std::vector<uint32_t> completion_tokens_;  // by choice
};

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_CHAT_REPLY_H_

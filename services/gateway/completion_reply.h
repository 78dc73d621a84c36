#ifndef TESSERA_SERVICES_GATEWAY_COMPLETION_REPLY_H_
#define TESSERA_SERVICES_GATEWAY_COMPLETION_REPLY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/repeated_ptr_field.h"
#include "services/gateway/reply_format.h"
#include "services/gateway/sampling_fields.h"
#include "tessera/tokenizer/v1/tokenizer.pb.h"

namespace tessera::gateway {

// Builds the answer of POST /v1/completions from the streams of its prompts: whole
// ("text_completion"), or as the events of a stream. A choice's index counts over all prompts.
// Threading: one thread at a time.
class CompletionReply final {
 public:
  struct Options {
    StreamOptions stream;
    bool logprobs = false;
    uint32_t prompts = 1;
    uint32_t choices_per_prompt = 1;
  };

  CompletionReply(ReplyHead head, const Options& options);

  // Takes an event of the prompt's stream in. When streaming, appends its events to `out`.
  void OnStarted(const tokenizer::v1::GenerateStarted& started);
  void OnDelta(uint32_t prompt, const tokenizer::v1::GenerateDelta& delta, std::string& out);
  void OnFinished(const tokenizer::v1::GenerateFinished& finished);

  // After every prompt has finished: the end of the stream, or the body of the whole answer.
  void AppendEnd(std::string& out) const;
  std::string Whole() const;

 private:
  struct Choice {
    std::string text;
    google::protobuf::RepeatedPtrField<tokenizer::v1::TextToken> tokens;
    tokenizer::v1::ChoiceEnd end;
    uint64_t text_offset = 0;
    uint32_t completion_tokens = 0;
  };

  ReplyHead head_;
  const Options options_;
  std::vector<Choice> choices_;
  UsageCounts usage_;
};

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_COMPLETION_REPLY_H_

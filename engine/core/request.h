#ifndef TESSERA_ENGINE_CORE_REQUEST_H_
#define TESSERA_ENGINE_CORE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/core/ids.h"
#include "engine/core/sampling_params.h"
#include "engine/core/scheduler_view.h"
#include "engine/core/step.h"

namespace tessera::engine {

// One request to generate, checked and resolved: nothing is left to a default.
struct GenerationRequest {
  std::string request_id;  // unique among live requests
  std::vector<TokenId> prompt;
  // Choice i draws with SeedOfChoice(seed, i).
  SamplingParams sampling;
  uint32_t choices = 1;
  uint32_t max_tokens = 1;               // per choice; prompt and max_tokens fit the context
  std::vector<TokenId> eos_ids;          // end a choice unnamed; empty when they are to be ignored
  std::vector<TokenId> stop_ids;         // end a choice and are named in its end
  int32_t priority = 0;                  // lower runs first
  uint64_t deadline_us = kNoDeadlineUs;  // on the engine's Clock
};

// The seed of one choice; choice 0 draws as a request with n = 1 would.
inline uint64_t SeedOfChoice(uint64_t seed, uint32_t choice_index) {
  return seed + 0x9E3779B97F4A7C15ull * choice_index;
}

enum class FinishReason : uint8_t { kStop, kLength, kAbort };

struct GeneratedToken {
  TokenId token;
  std::optional<float> logprob;
  std::vector<TokenLogprob> top_logprobs;
};

// How one choice ended.
struct ChoiceEnd {
  uint32_t choice_index = 0;
  FinishReason reason = FinishReason::kStop;
  std::optional<TokenId> stop_token;
  uint32_t completion_tokens = 0;
};

// New tokens of one choice; the last delta of a choice carries `end`.
struct ChoiceDelta {
  uint32_t choice_index = 0;
  std::vector<GeneratedToken> tokens;
  std::optional<ChoiceEnd> end;
};

// The end of a request. `status` is OK exactly when every choice ended by itself or by Abort.
struct RequestEnd {
  absl::Status status;
  std::vector<ChoiceEnd> choices;  // by index; only when OK
  uint32_t prompt_tokens = 0;
  uint32_t completion_tokens = 0;  // over all choices
  uint64_t queue_us = 0;           // admission to the first step
  uint64_t prefill_us = 0;         // from there to the first token
  uint64_t decode_us = 0;          // first to last token
};

// Receives what a request brings forth: deltas, then exactly one end, nothing after it.
// Threading: called by the executor's thread alone, which must not wait: an implementation hands
// over and returns, and never calls back into the executor.
class RequestSink {
 public:
  virtual ~RequestSink() = default;
  virtual void OnDelta(ChoiceDelta delta) = 0;
  virtual void OnEnd(RequestEnd end) = 0;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_CORE_REQUEST_H_

#ifndef TESSERA_ENGINE_CORE_SAMPLING_PARAMS_H_
#define TESSERA_ENGINE_CORE_SAMPLING_PARAMS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/core/ids.h"

namespace tessera::engine {

// How the tokens of one sequence are chosen: every field resolved, nothing left to a default.
// The order of work is the one of SampleToken (engine/sampling): penalties, bias, forbidden ends,
// temperature, top_k, top_p, min_p, draw.
struct SamplingParams {
  float temperature = 1.0f;  // 0: the most likely token, lowest id on a tie
  uint32_t top_k = 0;        // 0: all
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;  // over tokens of prompt and output
  float presence_penalty = 0.0f;    // over tokens of the output
  float frequency_penalty = 0.0f;   // likewise, per occurrence
  std::vector<std::pair<TokenId, float>> logit_bias;
  // With the index of the generated token it decides the draw, whatever else is in the batch.
  uint64_t seed = 0;
  uint32_t min_tokens = 0;           // until then no token of `end_ids` is chosen
  std::vector<TokenId> end_ids;      // end and stop tokens, for min_tokens
  std::optional<uint32_t> logprobs;  // alternatives to report; absent: no log probabilities
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_CORE_SAMPLING_PARAMS_H_

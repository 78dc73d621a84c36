#ifndef TESSERA_ENGINE_SAMPLING_SAMPLER_H_
#define TESSERA_ENGINE_SAMPLING_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/core/ids.h"
#include "engine/core/sampling_params.h"
#include "engine/core/step.h"
#include "engine/sampling/token_history.h"

namespace tessera::engine {

// Alternatives with log probabilities that one token may report.
inline constexpr uint32_t kLogprobsMax = 64;

// Buffers that SampleToken reuses; one a thread. They grow to O(vocab) once and stay.
struct SamplerScratch {
  struct Candidate {
    float logit;
    uint32_t id;
  };
  std::vector<float> logits;   // with penalties and bias
  std::vector<float> weights;  // exp((logit - largest) / temperature)
  std::vector<Candidate> candidates;
};

struct SampledToken {
  TokenId token;
  std::optional<float> logprob;            // of `token`; present iff params.logprobs is
  std::vector<TokenLogprob> top_logprobs;  // most likely first, lower id first on a tie
  // A logit is NaN or +infinity, or none is finite: `token` is 0 and means nothing.
  // (-infinity beside finite ones is legal: that token cannot be drawn.)
  bool not_finite = false;
};

// Chooses token number `index` (0: the first one generated) of a sequence from its row of logits.
//   logits: [vocab] float32, the model's own; not changed.
//   params: as in sampling_params.h. Values outside their ranges are treated as "off".
//   history: tokens of prompt and output so far; penalties read it.
// Order of work: repetition, presence and frequency penalty, logit_bias, end ids forbidden while
// index < min_tokens, temperature, top_k, top_p, min_p (relative to the most likely token that is
// left), draw. If bias and forbidden ends leave no token at all, both are ignored. At least one
// token always survives each filter; filters keep the lower id on a tie. Log probabilities are
// log-softmax of the unmodified logits, whatever the parameters are.
//
// Pure: equal arguments give equal results; the draw is Philox-4x32-10 with key `seed` and counter
// `index`, so neither batch, chunking, preemption nor the number of earlier calls matters.
// Threading: any, with a scratch each. Cost: greedy without penalties reads the row once (twice
// with logprobs); sampling three times or less, plus a sort of the tokens that can be drawn.
SampledToken SampleToken(std::span<const float> logits, const SamplingParams& params,
                         const TokenHistory& history, uint32_t index, SamplerScratch& scratch);

// The uniform number in [0, 1) that decides draw `index` of a sequence with `seed`.
double UniformDraw(uint64_t seed, uint64_t index);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SAMPLING_SAMPLER_H_

#ifndef TESSERA_ENGINE_CORE_STEP_H_
#define TESSERA_ENGINE_CORE_STEP_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/core/ids.h"
#include "engine/core/sampling_params.h"

namespace tessera::engine {

// A sequence that enters the workers: sent before its first piece of work, and again when it gets a
// slot anew after preemption. The worker zeroes the slot, whoever had it before.
struct SequenceStart {
  SequenceId sequence;
  SlotId slot;
  uint32_t prompt_tokens = 0;  // tokens after these count as output, for penalties and draws
  SamplingParams sampling;
};

// Work on one sequence in one step.
struct SequenceWork {
  SequenceId sequence;
  uint32_t position = 0;            // of the first token
  std::vector<TokenId> tokens;      // empty: one token, the one sampled for it in the last step
  std::vector<BlockId> new_blocks;  // appended to the end of its block table
  bool sample = false;              // whether to sample after the last token
};

// One step, the same for every worker. Order within: forget `ended`, take in `started`, run `work`.
struct StepPlan {
  uint64_t step = 0;  // counts from 1
  std::vector<SequenceId> ended;
  std::vector<SequenceStart> started;
  std::vector<SequenceWork> work;
};

struct TokenLogprob {
  TokenId token;
  float logprob = 0;
};

// What one sequence got; one entry for each work with `sample`, in the plan's order.
struct SequenceResult {
  SequenceId sequence;
  TokenId token;
  std::optional<float> logprob;
  std::vector<TokenLogprob> top_logprobs;
  // The logits were not finite: `token` means nothing and the sequence must end.
  bool not_finite = false;
};

struct StepResult {
  uint64_t step = 0;
  std::vector<SequenceResult> results;
  uint64_t device_us = 0;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_CORE_STEP_H_

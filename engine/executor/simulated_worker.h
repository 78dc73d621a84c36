#ifndef TESSERA_ENGINE_EXECUTOR_SIMULATED_WORKER_H_
#define TESSERA_ENGINE_EXECUTOR_SIMULATED_WORKER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/core/check.h"
#include "engine/core/request.h"
#include "engine/core/step.h"

namespace tessera::engine {

// A worker without a model, for tests: the next token is a hash of all tokens before it and of the
// seed, so what a request must answer is known in advance, whatever was preempted or replayed. It
// holds the plans to the rules of the protocol and aborts on the first one that is broken.
class SimulatedWorker {
 public:
  struct Limits {
    uint32_t slots, blocks, block_tokens, step_tokens_max, vocab;
  };
  explicit SimulatedWorker(const Limits& limits) : limits_(limits) {}

  // What follows `tokens`.
  static TokenId Next(const std::vector<TokenId>& tokens, uint64_t seed, uint32_t vocab) {
    uint64_t hash = seed * 0x9E3779B97F4A7C15ull + 1;
    for (TokenId token : tokens) hash = (hash ^ token.value) * 0x100000001B3ull + 0x51;
    hash ^= hash >> 29;
    return TokenId(static_cast<uint32_t>(hash % vocab));
  }

  // The first `count` tokens that a choice must answer when nothing ends it.
  static std::vector<TokenId> Answer(const GenerationRequest& request, uint32_t choice_index,
                                     uint32_t count, uint32_t vocab) {
    std::vector<TokenId> tokens = request.prompt;
    const uint64_t seed = SeedOfChoice(request.sampling.seed, choice_index);
    for (uint32_t i = 0; i < count; ++i) tokens.push_back(Next(tokens, seed, vocab));
    return {tokens.begin() + static_cast<long>(request.prompt.size()), tokens.end()};
  }

  // Sequences for which this says true get logits that are not finite.
  std::function<bool(const std::vector<TokenId>& tokens)> not_finite;

  StepResult Run(const StepPlan& plan) {
    Rule(plan.step == step_ + 1, plan, "steps count up");
    step_ = plan.step;
    for (SequenceId id : plan.ended) Forget(id, plan);
    for (const SequenceStart& start : plan.started) {
      Rule(start.slot.value < limits_.slots, plan, "slot exists");
      Rule(slots_.insert(start.slot.value).second, plan, "slot is free");
      Rule(!sequences_.contains(start.sequence.value), plan, "sequence is new");
      sequences_[start.sequence.value] = {.start = start};
    }
    StepResult result = {.step = plan.step, .device_us = 1};
    std::set<uint64_t> worked;
    uint32_t tokens = 0;
    bool prefills_began = false;
    for (const SequenceWork& work : plan.work) {
      Rule(worked.insert(work.sequence.value).second, plan, "one piece of work a sequence");
      tokens += work.tokens.empty() ? 1 : static_cast<uint32_t>(work.tokens.size());
      Rule(!(work.tokens.empty() && prefills_began), plan, "decodes come first");
      prefills_began |= !work.tokens.empty();
      RunWork(work, plan, result);
    }
    Rule(tokens <= limits_.step_tokens_max, plan, "token budget");
    return result;
  }

 private:
  struct Held {
    SequenceStart start;
    std::vector<uint32_t> blocks;
    std::vector<TokenId> tokens;   // computed
    std::vector<TokenId> sampled;  // not yet computed: at most one
  };

  static void Rule(bool kept, const StepPlan& plan, const char* rule) {
    TESSERA_CHECK(kept, absl::StrCat("plan of step ", plan.step, ": ", rule));
  }

  void Forget(SequenceId id, const StepPlan& plan) {
    const auto it = sequences_.find(id.value);
    Rule(it != sequences_.end(), plan, "what ended is known");
    slots_.erase(it->second.start.slot.value);
    for (uint32_t block : it->second.blocks) blocks_.erase(block);
    sequences_.erase(it);
  }

  void RunWork(const SequenceWork& work, const StepPlan& plan, StepResult& result) {
    const auto it = sequences_.find(work.sequence.value);
    Rule(it != sequences_.end(), plan, "work is for a known sequence");
    Held& held = it->second;
    Rule(work.position == held.tokens.size(), plan, "no token is skipped or repeated");
    for (BlockId block : work.new_blocks) {
      Rule(block.value < limits_.blocks, plan, "block exists");
      Rule(blocks_.insert(block.value).second, plan, "block is free");
      held.blocks.push_back(block.value);
    }
    if (work.tokens.empty()) {
      Rule(held.sampled.size() == 1, plan, "a decode follows a sample");
      held.tokens.push_back(held.sampled[0]);
    } else {
      held.tokens.insert(held.tokens.end(), work.tokens.begin(), work.tokens.end());
    }
    held.sampled.clear();
    Rule(held.tokens.size() <= held.blocks.size() * limits_.block_tokens, plan, "blocks cover it");
    if (!work.sample) return;
    held.sampled = {Next(held.tokens, held.start.sampling.seed, limits_.vocab)};
    result.results.push_back({.sequence = work.sequence,
                              .token = held.sampled[0],
                              .not_finite = not_finite && not_finite(held.tokens)});
  }

  const Limits limits_;
  uint64_t step_ = 0;
  std::map<uint64_t, Held> sequences_;
  std::set<uint32_t> slots_;
  std::set<uint32_t> blocks_;

 public:
  // A worker that starts after another died goes on counting where the plans are.
  void ExpectStep(uint64_t step) { step_ = step - 1; }
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_EXECUTOR_SIMULATED_WORKER_H_

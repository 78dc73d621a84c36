#ifndef TESSERA_ENGINE_WORKER_STEP_RUNNER_H_
#define TESSERA_ENGINE_WORKER_STEP_RUNNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/core/clock.h"
#include "engine/core/step.h"
#include "engine/models/model.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/token_history.h"

namespace tessera::engine {

// Runs step plans on a model: keeps each sequence's slot, block table, token history and sampling
// parameters between steps, forwards the plan's chunks in one go and samples where it is asked to.
//
// The engine checked the plan; it is checked here again, whole, before the model sees any of it.
// A broken plan is an error and the runner must not be used afterwards: both ends have lost count.
//
// Ownership: borrows model and clock.  Threading: one thread.
// Cost: besides the model's, O(tokens of the plan) and the sampler's; buffers are kept.
class StepRunner final {
 public:
  StepRunner(Model& model, const Clock& clock);

  // Errors: kInvalidArgument names what the plan broke; else the model's own.
  absl::StatusOr<StepResult> Run(const StepPlan& plan);

  size_t sequences_held() const { return sequences_.size(); }

 private:
  struct Held {
    SlotId slot;
    bool fresh = true;  // the slot has not been zeroed for it yet
    uint32_t prompt_tokens = 0;
    SamplingParams sampling;
    bool keeps_history = false;  // some penalty reads it
    std::vector<BlockId> block_table;
    uint32_t computed = 0;
    std::optional<TokenId> sampled;  // not computed yet
    TokenHistory history;
  };

  absl::Status Forget(SequenceId id);
  absl::Status Take(const SequenceStart& start);
  // Checks one piece of work and appends its chunk.
  absl::Status Prepare(const SequenceWork& work);
  absl::Status CheckTokens(const SequenceWork& work, const Held& held) const;
  absl::Status TakeBlocks(const SequenceWork& work, Held& held);
  SequenceResult Sample(const SequenceWork& work, Held& held, std::span<const float> logits);

  Model& model_;
  const Clock& clock_;
  uint64_t step_ = 0;  // of the last plan; 0: none yet
  absl::flat_hash_map<uint64_t, std::unique_ptr<Held>> sequences_;
  std::vector<bool> slots_taken_;
  std::vector<bool> blocks_taken_;
  std::vector<bool> worked_slots_;  // in this step
  std::vector<SequenceChunk> chunks_;
  std::vector<Held*> held_of_chunk_;
  std::vector<uint32_t> last_offsets_;  // of each chunk; stable while chunks point into it
  std::vector<float> logits_;
  SamplerScratch scratch_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WORKER_STEP_RUNNER_H_

#ifndef TESSERA_ENGINE_CORE_SCHEDULER_VIEW_H_
#define TESSERA_ENGINE_CORE_SCHEDULER_VIEW_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "engine/core/ids.h"
#include "engine/core/sequence_state.h"

namespace tessera::engine {

inline constexpr uint64_t kNoDeadlineUs = std::numeric_limits<uint64_t>::max();

// What the scheduler may know about one sequence.
struct SequenceView {
  SequenceId sequence;
  SequenceState state = SequenceState::kWaiting;
  int32_t priority = 0;   // lower runs first
  uint64_t arrival = 0;   // unique; smaller came earlier
  uint32_t tokens = 0;    // that exist: prompt, generated, and sampled but still on their way
  uint32_t computed = 0;  // of them, those whose computation has been dispatched
  // No step is planned once `tokens` reaches it: prompt and max_tokens, or the context.
  uint32_t tokens_max = 0;
  uint32_t blocks_held = 0;
  // Sampled tokens that have not come back: such a sequence can decode on, not start anew.
  uint32_t tokens_pending = 0;
  uint64_t deadline_us = kNoDeadlineUs;
};

// Everything that PlanStep decides on.
struct SchedulerView {
  uint64_t now_us = 0;
  uint32_t blocks_free = 0;
  uint32_t slots_free = 0;
  // Both in order of (priority, arrival).
  std::vector<SequenceView> running;  // kPrefilling and kDecoding: they hold slot and blocks
  std::vector<SequenceView> waiting;  // kWaiting and kPreempted: they hold nothing
};

// The limits of one step.
struct StepLimits {
  uint32_t block_tokens = 16;
  uint32_t step_tokens_max = 512;  // over all sequences; at least the number of slots
  // Prefill tokens of a step that also decodes: it bounds what a long prompt adds to the
  // inter-token latency of the sequences beside it. At least 1.
  uint32_t prefill_tokens_beside_decode_max = 128;
};

// Blocks that hold `tokens` tokens.
inline uint32_t BlocksFor(uint32_t tokens, uint32_t block_tokens) {
  return tokens / block_tokens + (tokens % block_tokens != 0 ? 1 : 0);
}

// Work on one sequence in the step.
struct WorkDecision {
  SequenceId sequence;
  uint32_t position = 0;
  uint32_t tokens = 0;
  uint32_t new_blocks = 0;  // to take from the pool
  bool sample = false;
  friend bool operator==(const WorkDecision&, const WorkDecision&) = default;
};

// Why the head of the queue was not admitted.
enum class WaitReason : uint8_t {
  kNone,         // nothing waits
  kSlotsShort,   // every state slot is taken
  kBlocksShort,  // its tokens, or what the running ones need next, would not fit
  kTokensShort,  // the step's token budget is spent
  kResultShort,  // preempted with a token on its way: admitted once that is here
};

// What a step does; all of it data. Order of application: expired, preempted, admitted, work.
struct StepDecision {
  std::vector<SequenceId> expired;    // their deadline has passed
  std::vector<SequenceId> preempted;  // give everything back, wait again
  std::vector<SequenceId> admitted;   // take a slot
  std::vector<WorkDecision> work;     // decodes first
  WaitReason wait_reason = WaitReason::kNone;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_CORE_SCHEDULER_VIEW_H_

#include "engine/scheduler/plan_step.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace tessera::engine {
namespace {

// The fate of a running sequence within one plan.
enum class Fate : uint8_t { kStays, kPlanned, kGone };

// The state of one planning; `view` is never changed.
struct Planning {
  const SchedulerView& view;
  const StepLimits& limits;
  StepDecision decision;
  std::vector<Fate> fates;  // of view.running
  uint32_t blocks_free;
  uint32_t slots_free;
  uint32_t budget;

  Planning(const SchedulerView& v, const StepLimits& l)
      : view(v),
        limits(l),
        fates(v.running.size(), Fate::kStays),
        blocks_free(v.blocks_free),
        slots_free(v.slots_free),
        budget(l.step_tokens_max) {}

  void Free(size_t running_index) {
    fates[running_index] = Fate::kGone;
    blocks_free += view.running[running_index].blocks_held;
    ++slots_free;
  }
};

// Whether the next token of a decoding sequence lies beyond the blocks it holds.
bool NeedsBlock(const SequenceView& sequence, uint32_t block_tokens) {
  return sequence.computed / block_tokens >= sequence.blocks_held;
}

bool WantsToken(const SequenceView& sequence) {
  return sequence.state == SequenceState::kDecoding && sequence.tokens < sequence.tokens_max;
}

void ExpireRunning(Planning& p) {
  for (size_t i = 0; i < p.view.running.size(); ++i) {
    if (p.view.running[i].deadline_us > p.view.now_us) continue;
    p.decision.expired.push_back(p.view.running[i].sequence);
    p.Free(i);
  }
}

void PlanDecodes(Planning& p) {
  const auto& running = p.view.running;
  size_t last = running.size();  // sequences from here on are gone
  for (size_t i = 0; i < last && p.budget > 0; ++i) {
    const SequenceView& sequence = running[i];
    if (p.fates[i] != Fate::kStays || !WantsToken(sequence)) continue;
    const bool needs_block = NeedsBlock(sequence, p.limits.block_tokens);
    while (needs_block && p.blocks_free == 0 && last > i) {
      --last;
      if (p.fates[last] == Fate::kGone) continue;
      p.decision.preempted.push_back(running[last].sequence);
      p.Free(last);
    }
    if (p.fates[i] == Fate::kGone) break;
    if (needs_block) --p.blocks_free;
    --p.budget;
    p.fates[i] = Fate::kPlanned;
    p.decision.work.push_back({.sequence = sequence.sequence,
                               .position = sequence.computed,
                               .tokens = 1,
                               .new_blocks = needs_block ? 1u : 0u,
                               .sample = true});
  }
}

void PlanPrefills(Planning& p) {
  for (size_t i = 0; i < p.view.running.size() && p.budget > 0; ++i) {
    const SequenceView& sequence = p.view.running[i];
    if (p.fates[i] == Fate::kGone || sequence.state != SequenceState::kPrefilling) continue;
    const uint32_t left = sequence.tokens - sequence.computed;
    const uint32_t tokens = std::min(left, p.budget);
    p.budget -= tokens;
    p.fates[i] = Fate::kPlanned;
    p.decision.work.push_back({.sequence = sequence.sequence,
                               .position = sequence.computed,
                               .tokens = tokens,
                               .new_blocks = 0,
                               .sample = tokens == left});
  }
}

// Blocks that must stay free for the running sequences to take one more step each. Those that
// prefill hold blocks for the tokens they have, not for the one they will sample.
uint32_t BlocksReserved(const Planning& p) {
  uint32_t reserved = 0;
  for (size_t i = 0; i < p.view.running.size(); ++i) {
    if (p.fates[i] != Fate::kGone) ++reserved;
  }
  return reserved;
}

void Admit(Planning& p) {
  uint32_t reserved = BlocksReserved(p);
  for (const SequenceView& sequence : p.view.waiting) {
    if (sequence.deadline_us <= p.view.now_us) continue;  // expired already
    WaitReason& reason = p.decision.wait_reason;
    const uint32_t blocks = BlocksFor(sequence.tokens, p.limits.block_tokens);
    // Alone, a sequence needs its own blocks only: any request fits an empty pool.
    const bool fits = blocks + reserved <= p.blocks_free;
    if (sequence.tokens_pending > 0) reason = WaitReason::kResultShort;
    if (p.budget == 0) reason = WaitReason::kTokensShort;
    if (!fits || !p.decision.preempted.empty()) reason = WaitReason::kBlocksShort;
    if (p.slots_free == 0) reason = WaitReason::kSlotsShort;
    if (reason != WaitReason::kNone) return;
    p.blocks_free -= blocks;
    --p.slots_free;
    ++reserved;
    const uint32_t tokens = std::min(sequence.tokens, p.budget);
    p.budget -= tokens;
    p.decision.admitted.push_back(sequence.sequence);
    p.decision.work.push_back({.sequence = sequence.sequence,
                               .position = 0,
                               .tokens = tokens,
                               .new_blocks = blocks,
                               .sample = tokens == sequence.tokens});
  }
}

}  // namespace

StepDecision PlanStep(const SchedulerView& view, const StepLimits& limits) {
  Planning p(view, limits);
  ExpireRunning(p);
  for (const SequenceView& sequence : view.waiting) {
    if (sequence.deadline_us <= view.now_us) p.decision.expired.push_back(sequence.sequence);
  }
  PlanDecodes(p);
  if (!p.decision.work.empty()) {
    p.budget = std::min(p.budget, limits.prefill_tokens_beside_decode_max);
  }
  PlanPrefills(p);
  Admit(p);
  return std::move(p.decision);
}

namespace {

// One sequence as CheckDecision follows it through the decision.
struct Standing {
  const SequenceView* view;
  bool running;
  bool gone = false;
  bool worked = false;
};

using Standings = absl::flat_hash_map<SequenceId, Standing>;

absl::Status Broken(SequenceId sequence, const char* rule) {
  return absl::InternalError(absl::StrCat("step plan: sequence ", sequence.value, " ", rule));
}

absl::Status CheckWork(const WorkDecision& work, const StepLimits& limits, Standing& standing) {
  const SequenceView& view = *standing.view;
  if (standing.gone || !standing.running) return Broken(work.sequence, "works without a slot");
  if (standing.worked) return Broken(work.sequence, "works twice");
  standing.worked = true;
  if (work.tokens == 0) return Broken(work.sequence, "works on no token");
  if (work.position != view.computed) return Broken(work.sequence, "skips or repeats tokens");
  if (work.position + work.tokens > view.tokens) return Broken(work.sequence, "outruns its tokens");
  if (work.sample != (work.position + work.tokens == view.tokens)) {
    return Broken(work.sequence, "samples at the wrong place");
  }
  if (work.sample && view.tokens >= view.tokens_max) return Broken(work.sequence, "is at its end");
  if (BlocksFor(work.position + work.tokens, limits.block_tokens) >
      view.blocks_held + work.new_blocks) {
    return Broken(work.sequence, "has too few blocks");
  }
  return absl::OkStatus();
}

absl::Status CheckReleases(const StepDecision& decision, Standings& standings,
                           uint64_t& blocks_free, uint64_t& slots_free) {
  for (const auto* list : {&decision.expired, &decision.preempted}) {
    for (SequenceId id : *list) {
      const auto it = standings.find(id);
      if (it == standings.end()) return Broken(id, "is released but unknown");
      if (it->second.gone) return Broken(id, "is released twice");
      if (list == &decision.preempted && !it->second.running) {
        return Broken(id, "is preempted but does not run");
      }
      it->second.gone = true;
      if (!it->second.running) continue;
      blocks_free += it->second.view->blocks_held;
      ++slots_free;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDecision(const SchedulerView& view, const StepLimits& limits,
                           const StepDecision& decision) {
  Standings standings;
  standings.reserve(view.running.size() + decision.expired.size() + decision.admitted.size());
  for (const SequenceView& s : view.running) standings[s.sequence] = {&s, /*running=*/true};
  for (const SequenceView& s : view.waiting) standings[s.sequence] = {&s, /*running=*/false};

  uint64_t blocks_free = view.blocks_free;
  uint64_t slots_free = view.slots_free;
  if (absl::Status s = CheckReleases(decision, standings, blocks_free, slots_free); !s.ok()) {
    return s;
  }
  for (SequenceId id : decision.admitted) {
    const auto it = standings.find(id);
    if (it == standings.end() || it->second.running || it->second.gone) {
      return Broken(id, "is admitted but does not wait");
    }
    if (slots_free == 0) return Broken(id, "is admitted without a free slot");
    --slots_free;
    it->second.running = true;
  }
  uint64_t tokens = 0;
  for (const WorkDecision& work : decision.work) {
    const auto it = standings.find(work.sequence);
    if (it == standings.end()) return Broken(work.sequence, "works but is unknown");
    if (absl::Status s = CheckWork(work, limits, it->second); !s.ok()) return s;
    if (work.new_blocks > blocks_free) return Broken(work.sequence, "takes blocks that are held");
    blocks_free -= work.new_blocks;
    tokens += work.tokens;
  }
  for (SequenceId id : decision.admitted) {
    if (!standings[id].worked) return Broken(id, "is admitted without work");
  }
  if (tokens > limits.step_tokens_max) {
    return absl::InternalError(
        absl::StrCat("step plan: ", tokens, " tokens; the limit is ", limits.step_tokens_max));
  }
  return absl::OkStatus();
}

}  // namespace tessera::engine

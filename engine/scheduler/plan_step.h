#ifndef TESSERA_ENGINE_SCHEDULER_PLAN_STEP_H_
#define TESSERA_ENGINE_SCHEDULER_PLAN_STEP_H_

#include <vector>

#include "absl/status/status.h"
#include "engine/core/scheduler_view.h"

namespace tessera::engine {

// What the next step does: first come, first served within a priority, decodes first.
//
//  1. Whatever has passed its deadline is expired, running or waiting; its memory counts as free.
//  2. Every decoding sequence gets one token, in order of (priority, arrival). One that needs a
//     block when none is free preempts the last running sequence of that order, itself at worst.
//  3. Prefilling sequences share what is left of the token budget, in the same order.
//  4. Waiting ones are admitted strictly in order while a slot is free, budget is left, nothing was
//     preempted in this step, and all their tokens fit besides the block that each running sequence
//     may need next. All blocks of the tokens they have are taken at once.
//
// It ends, always: the first sequence of the order is never preempted and any request fits the pool
// alone (the executor refuses others), so the first one finishes, then the next is first.
//
// Pure: no clock, lock, log or allocation of blocks. Equal input gives an equal decision.
// Cost: O(running + waiting).
StepDecision PlanStep(const SchedulerView& view, const StepLimits& limits);

// Proves that `decision` may be applied to `view`: budgets, blocks and slots suffice, every id is
// known and used once, positions are where the sequences stand. kInternal names what is broken.
absl::Status CheckDecision(const SchedulerView& view, const StepLimits& limits,
                           const StepDecision& decision);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SCHEDULER_PLAN_STEP_H_

#include "engine/scheduler/plan_step.h"

#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

using testing::Eq;

// Blocks of four tokens; ten tokens a step, four of them for prefill beside decodes.
constexpr StepLimits kLimits = {
    .block_tokens = 4, .step_tokens_max = 10, .prefill_tokens_beside_decode_max = 4};

// Rows of state, in the order of arrival: View().Slots(2).Blocks(9).Decoding(1).Waiting(2, 7).
class View {
 public:
  View& Slots(uint32_t free) { return view_.slots_free = free, *this; }
  View& Blocks(uint32_t free) { return view_.blocks_free = free, *this; }
  View& Now(uint64_t us) { return view_.now_us = us, *this; }

  // A sequence whose next token lies in a block that it holds.
  View& Decoding(uint64_t id, uint32_t tokens = 6) {
    return Running(id, SequenceState::kDecoding, tokens, tokens - 1,
                   BlocksFor(tokens, kLimits.block_tokens));
  }
  // One whose next token opens a block.
  View& DecodingNeedsBlock(uint64_t id, uint32_t tokens = 5) {
    return Running(id, SequenceState::kDecoding, tokens, tokens - 1,
                   BlocksFor(tokens - 1, kLimits.block_tokens));
  }
  View& Prefilling(uint64_t id, uint32_t tokens, uint32_t computed) {
    return Running(id, SequenceState::kPrefilling, tokens, computed,
                   BlocksFor(tokens, kLimits.block_tokens));
  }
  View& Waiting(uint64_t id, uint32_t tokens) {
    return Add(view_.waiting, id, SequenceState::kWaiting, tokens, 0, 0);
  }
  View& Preempted(uint64_t id, uint32_t tokens) {
    return Add(view_.waiting, id, SequenceState::kPreempted, tokens, 0, 0);
  }
  // Of the sequence added last.
  View& Deadline(uint64_t us) { return last_->deadline_us = us, *this; }
  View& Pending(uint32_t tokens) { return last_->tokens_pending = tokens, *this; }
  View& AtItsEnd() { return last_->tokens_max = last_->tokens, *this; }

  operator const SchedulerView&() const { return view_; }  // NOLINT: that is what a builder is for

 private:
  View& Running(uint64_t id, SequenceState state, uint32_t tokens, uint32_t computed,
                uint32_t blocks) {
    return Add(view_.running, id, state, tokens, computed, blocks);
  }
  View& Add(std::vector<SequenceView>& list, uint64_t id, SequenceState state, uint32_t tokens,
            uint32_t computed, uint32_t blocks) {
    list.push_back({.sequence = SequenceId(id),
                    .state = state,
                    .arrival = id,
                    .tokens = tokens,
                    .computed = computed,
                    .tokens_max = 1000,
                    .blocks_held = blocks});
    last_ = &list.back();
    return *this;
  }
  SchedulerView view_{.blocks_free = 100, .slots_free = 4};
  SequenceView* last_ = nullptr;
};

const char* Name(WaitReason reason) {
  switch (reason) {
    case WaitReason::kNone:
      return "none";
    case WaitReason::kSlotsShort:
      return "slots";
    case WaitReason::kBlocksShort:
      return "blocks";
    case WaitReason::kTokensShort:
      return "tokens";
    case WaitReason::kResultShort:
      return "result";
  }
  return "?";
}

// "expire 1; preempt 2; admit 3; 1@5+1*; 3@0+4 b2; short blocks": work reads id@position+tokens, a
// star where a token is sampled, and the blocks it takes.
std::string Text(const StepDecision& decision) {
  std::vector<std::string> parts;
  for (SequenceId id : decision.expired) parts.push_back(absl::StrCat("expire ", id.value));
  for (SequenceId id : decision.preempted) parts.push_back(absl::StrCat("preempt ", id.value));
  for (SequenceId id : decision.admitted) parts.push_back(absl::StrCat("admit ", id.value));
  for (const WorkDecision& work : decision.work) {
    parts.push_back(absl::StrCat(
        work.sequence.value, "@", work.position, "+", work.tokens, work.sample ? "*" : "",
        work.new_blocks > 0 ? absl::StrCat(" b", work.new_blocks) : std::string()));
  }
  if (decision.wait_reason != WaitReason::kNone) {
    parts.push_back(absl::StrCat("short ", Name(decision.wait_reason)));
  }
  return absl::StrJoin(parts, "; ");
}

std::string Plan(const SchedulerView& view) {
  const StepDecision decision = PlanStep(view, kLimits);
  EXPECT_THAT(CheckDecision(view, kLimits, decision), Eq(absl::OkStatus()));
  return Text(decision);
}

TEST(PlanStep, PlansNothingWhenThereIsNothing) { EXPECT_EQ(Plan(View()), ""); }

TEST(PlanStep, AdmitsInOrderOfArrivalAndTakesAllTheirBlocks) {
  EXPECT_EQ(Plan(View().Waiting(1, 3).Waiting(2, 5)), "admit 1; admit 2; 1@0+3* b1; 2@0+5* b2");
}

TEST(PlanStep, CutsALongPromptIntoChunksOfTheBudget) {
  EXPECT_EQ(Plan(View().Waiting(1, 25)), "admit 1; 1@0+10 b7");
  EXPECT_EQ(Plan(View().Prefilling(1, 25, 10)), "1@10+10");
  EXPECT_EQ(Plan(View().Prefilling(1, 25, 20)), "1@20+5*");
}

TEST(PlanStep, DecodesBeforeItPrefills) {
  EXPECT_EQ(Plan(View().Prefilling(1, 9, 7).Decoding(2)), "2@5+1*; 1@7+2*");
}

TEST(PlanStep, BoundsThePrefillBesideDecodes) {
  EXPECT_EQ(Plan(View().Prefilling(1, 25, 0).Decoding(2)), "2@5+1*; 1@0+4");
  EXPECT_EQ(Plan(View().Decoding(1).Waiting(2, 25)), "admit 2; 1@5+1*; 2@0+4 b7");
}

TEST(PlanStep, LeavesTheQueueWaitingWhenTheBudgetIsSpent) {
  EXPECT_EQ(Plan(View().Waiting(1, 10).Waiting(2, 1)), "admit 1; 1@0+10* b3; short tokens");
}

TEST(PlanStep, LeavesTheQueueWaitingWhenSlotsRunOut) {
  EXPECT_EQ(Plan(View().Slots(1).Waiting(1, 2).Waiting(2, 2)), "admit 1; 1@0+2* b1; short slots");
}

TEST(PlanStep, NeverLetsASmallerRequestOvertakeTheHeadOfTheQueue) {
  EXPECT_EQ(Plan(View().Blocks(2).Waiting(1, 12).Waiting(2, 1)), "short blocks");
}

TEST(PlanStep, AdmitsOnlyWhatFitsBesideTheNextBlockOfEachRunningSequence) {
  EXPECT_EQ(Plan(View().Blocks(2).Decoding(1).Waiting(2, 5)), "1@5+1*; short blocks");
  EXPECT_EQ(Plan(View().Blocks(3).Decoding(1).Waiting(2, 3)), "admit 2; 1@5+1*; 2@0+3* b1");
}

TEST(PlanStep, AdmitsARequestThatNeedsTheWholePoolWhenItIsAlone) {
  EXPECT_EQ(Plan(View().Blocks(2).Waiting(1, 8)), "admit 1; 1@0+8* b2");
}

TEST(PlanStep, TakesABlockWhenTheNextTokenOpensOne) {
  EXPECT_EQ(Plan(View().DecodingNeedsBlock(1)), "1@4+1* b1");
}

TEST(PlanStep, PreemptsTheYoungestSequenceWhenBlocksRunOut) {
  EXPECT_EQ(Plan(View().Blocks(0).DecodingNeedsBlock(1).DecodingNeedsBlock(2)),
            "preempt 2; 1@4+1* b1");
  EXPECT_EQ(Plan(View().Blocks(0).DecodingNeedsBlock(1).Decoding(2).Decoding(3)),
            "preempt 3; 1@4+1* b1; 2@5+1*");
}

TEST(PlanStep, PreemptsAPrefillingSequenceIfItIsTheYoungest) {
  EXPECT_EQ(Plan(View().Blocks(0).DecodingNeedsBlock(1).Prefilling(2, 9, 4)),
            "preempt 2; 1@4+1* b1");
}

TEST(PlanStep, PreemptsASequenceForItselfWhenItIsTheYoungest) {
  EXPECT_EQ(Plan(View().Blocks(0).Decoding(1).DecodingNeedsBlock(2)), "preempt 2; 1@5+1*");
}

TEST(PlanStep, AdmitsNothingInAStepThatPreempts) {
  EXPECT_EQ(Plan(View().Blocks(0).DecodingNeedsBlock(1).DecodingNeedsBlock(2, 41).Waiting(3, 1)),
            "preempt 2; 1@4+1* b1; short blocks");
}

TEST(PlanStep, AdmitsAPreemptedSequenceOnlyOnceItsTokensAreHere) {
  EXPECT_EQ(Plan(View().Preempted(1, 6).Pending(1).Waiting(2, 1)), "short result");
  EXPECT_EQ(Plan(View().Preempted(1, 6)), "admit 1; 1@0+6* b2");
}

TEST(PlanStep, DecodesOnWhileTheLastTokenIsOnItsWay) {
  EXPECT_EQ(Plan(View().Decoding(1).Pending(1)), "1@5+1*");
}

TEST(PlanStep, PlansNoTokenBeyondTheEnd) {
  EXPECT_EQ(Plan(View().Decoding(1).Pending(1).AtItsEnd().Decoding(2)), "2@5+1*");
}

TEST(PlanStep, NeverSchedulesWhatHasExpired) {
  EXPECT_EQ(Plan(View().Now(50).Decoding(1).Deadline(50).Decoding(2).Deadline(51)),
            "expire 1; 2@5+1*");
  EXPECT_EQ(Plan(View().Now(50).Waiting(1, 3).Deadline(49).Waiting(2, 3)),
            "expire 1; admit 2; 2@0+3* b1");
}

TEST(PlanStep, GivesTheBlocksAndSlotOfAnExpiredSequenceToTheNext) {
  EXPECT_EQ(Plan(View().Slots(0).Blocks(0).Now(9).Decoding(1).Deadline(9).Waiting(2, 8)),
            "expire 1; admit 2; 2@0+8* b2");
}

TEST(CheckDecision, RefusesPlansThatBreakARule) {
  const View view = View().Blocks(1).Slots(0).DecodingNeedsBlock(1).Waiting(2, 3);
  const WorkDecision decode = {SequenceId(1), 4, 1, 1, true};
  const auto broken = [&](StepDecision decision) {
    return std::string(CheckDecision(view, kLimits, decision).message());
  };
  using testing::HasSubstr;
  EXPECT_EQ(broken({.work = {decode}}), "");
  EXPECT_THAT(broken({.work = {decode, decode}}), HasSubstr("works twice"));
  EXPECT_THAT(broken({.work = {{SequenceId(1), 4, 1, 0, true}}}), HasSubstr("too few blocks"));
  EXPECT_THAT(broken({.work = {{SequenceId(1), 4, 1, 2, true}}}),
              HasSubstr("blocks that are held"));
  EXPECT_THAT(broken({.work = {{SequenceId(1), 3, 1, 1, true}}}), HasSubstr("skips or repeats"));
  EXPECT_THAT(broken({.work = {{SequenceId(1), 4, 2, 1, true}}}), HasSubstr("outruns"));
  EXPECT_THAT(broken({.work = {{SequenceId(1), 4, 1, 1, false}}}), HasSubstr("wrong place"));
  EXPECT_THAT(broken({.work = {{SequenceId(2), 0, 3, 1, true}}}), HasSubstr("without a slot"));
  EXPECT_THAT(broken({.work = {{SequenceId(9), 0, 3, 1, true}}}), HasSubstr("unknown"));
  EXPECT_THAT(broken({.admitted = {SequenceId(2)}}), HasSubstr("without a free slot"));
  EXPECT_THAT(broken({.preempted = {SequenceId(2)}}), HasSubstr("does not run"));
  EXPECT_THAT(broken({.preempted = {SequenceId(1)}, .work = {decode}}),
              HasSubstr("without a slot"));
}

// Any state that can be met: no plan breaks a limit, and the first running sequence always moves.
TEST(PlanStep, KeepsItsLimitsAndMovesTheFirstSequenceInRandomStates) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    View view;
    view.Now(100).Blocks(random() % 4).Slots(random() % 3);
    const uint32_t running = random() % 6;
    for (uint64_t id = 1; id <= running; ++id) {
      const uint32_t tokens = 2 + random() % 20;
      if (random() % 3 == 0) {
        view.Prefilling(id, tokens, random() % tokens);
      } else if (tokens % 4 == 1 && random() % 2) {
        view.DecodingNeedsBlock(id, tokens);
      } else {
        view.Decoding(id, tokens);
      }
      if (random() % 8 == 0) view.Deadline(90 + random() % 20);
    }
    for (uint64_t id = 10; id < 10 + random() % 4; ++id) view.Waiting(id, 1 + random() % 20);
    const SchedulerView& state = view;
    const StepDecision decision = PlanStep(view, kLimits);
    ASSERT_EQ(CheckDecision(view, kLimits, decision), absl::OkStatus()) << "seed " << seed;
    ASSERT_EQ(Text(decision), Text(PlanStep(view, kLimits))) << "seed " << seed;
    if (state.running.empty() || state.running[0].deadline_us <= state.now_us) continue;
    EXPECT_TRUE(std::any_of(decision.work.begin(), decision.work.end(),
                            [&](const WorkDecision& work) {
                              return work.sequence == state.running[0].sequence;
                            }) ||
                // A prefill may wait for decodes to leave it budget; a decode never waits.
                state.running[0].state == SequenceState::kPrefilling ||
                // Alone at the ceiling of a pool that is smaller than it: refused at admission.
                running == 1)
        << "seed " << seed << ": " << Text(decision);
  }
}

}  // namespace
}  // namespace tessera::engine

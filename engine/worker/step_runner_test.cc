#include "engine/worker/step_runner.h"

#include "engine/worker/hash_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

using testing::HasSubstr;

constexpr uint32_t kVocab = 64;

class StillClock final : public Clock {
 public:
  uint64_t NowUs() const override { return 1; }
};

class StepRunnerTest : public testing::Test {
 protected:
  static std::vector<TokenId> Tokens(std::initializer_list<uint32_t> ids) {
    std::vector<TokenId> tokens;
    for (uint32_t id : ids) tokens.push_back(TokenId(id));
    return tokens;
  }
  static SequenceStart Start(uint64_t id, uint32_t slot, uint32_t prompt_tokens) {
    SequenceStart start = {
        .sequence = SequenceId(id), .slot = SlotId(slot), .prompt_tokens = prompt_tokens};
    start.sampling.temperature = 0;
    return start;
  }
  static SequenceWork Work(uint64_t id, uint32_t position, std::vector<TokenId> tokens,
                           std::initializer_list<uint32_t> blocks, bool sample = true) {
    SequenceWork work = {.sequence = SequenceId(id),
                         .position = position,
                         .tokens = std::move(tokens),
                         .sample = sample};
    for (uint32_t block : blocks) work.new_blocks.push_back(BlockId(block));
    return work;
  }
  absl::StatusOr<StepResult> Run(StepPlan plan) {
    plan.step = ++step_;
    return runner_.Run(plan);
  }
  std::string Refusal(StepPlan plan) {
    return std::string(Run(std::move(plan)).status().message());
  }

  StillClock clock_;
  HashModel model_{
      kVocab,
      {.slots = 3, .blocks = 8, .block_tokens = 4, .step_tokens_max = 12, .logit_rows_max = 3}};
  StepRunner runner_{model_, clock_};
  uint64_t step_ = 0;
};

TEST_F(StepRunnerTest, DecodesOnWithTheTokenThatItSampled) {
  std::vector<TokenId> all = Tokens({5, 6, 7});
  auto result = Run({.started = {Start(1, 2, 3)}, .work = {Work(1, 0, all, {4})}});
  for (uint32_t i = 0; i < 6; ++i) {
    ASSERT_EQ(result.status(), absl::OkStatus());
    ASSERT_EQ(result->results.size(), 1u);
    EXPECT_EQ(result->results[0].token, HashModel::Favourite(all, kVocab));
    EXPECT_FALSE(result->results[0].logprob.has_value());
    all.push_back(result->results[0].token);
    const auto position = static_cast<uint32_t>(all.size()) - 1;
    if (position % 4 == 0) {
      result = Run({.work = {Work(1, position, {}, {position / 4})}});
    } else {
      result = Run({.work = {Work(1, position, {}, {})}});
    }
  }
}

TEST_F(StepRunnerTest, APrefillInPiecesBesideAnotherEqualsOneInOneGo) {
  const std::vector<TokenId> prompt = Tokens({1, 2, 3, 4, 5, 6, 7});
  auto other = Run({.started = {Start(9, 0, 1)}, .work = {Work(9, 0, Tokens({8}), {7})}});
  ASSERT_EQ(other.status(), absl::OkStatus());
  auto first = Run({.started = {Start(1, 1, 7)},
                    .work = {Work(9, 1, {}, {}), Work(1, 0, Tokens({1, 2, 3}), {2, 5}, false)}});
  ASSERT_EQ(first.status(), absl::OkStatus());
  EXPECT_EQ(first->results.size(), 1u);
  auto last = Run({.work = {Work(9, 2, {}, {}), Work(1, 3, Tokens({4, 5, 6, 7}), {})}});
  ASSERT_EQ(last.status(), absl::OkStatus());
  ASSERT_EQ(last->results.size(), 2u);
  EXPECT_EQ(last->results[1].token, HashModel::Favourite(prompt, kVocab));
}

TEST_F(StepRunnerTest, ASlotIsZeroedForWhoeverTakesItNext) {
  ASSERT_TRUE(Run({.started = {Start(1, 0, 2)}, .work = {Work(1, 0, Tokens({1, 2}), {0})}}).ok());
  const auto result = Run({.ended = {SequenceId(1)},
                           .started = {Start(2, 0, 2)},
                           .work = {Work(2, 0, Tokens({3, 4}), {0})}});
  ASSERT_EQ(result.status(), absl::OkStatus());
  EXPECT_EQ(result->results[0].token, HashModel::Favourite(Tokens({3, 4}), kVocab));
  EXPECT_EQ(runner_.sequences_held(), 1u);
}

TEST_F(StepRunnerTest, DrawsDependOnTheSequenceAloneAlsoAfterItBeganAnew) {
  SequenceStart start = Start(1, 0, 3);
  start.sampling.temperature = 30;  // flat enough that draws differ
  start.sampling.seed = 77;
  std::vector<TokenId> all = Tokens({5, 6, 7});
  auto result = Run({.started = {start}, .work = {Work(1, 0, all, {0, 1, 2})}});
  std::vector<TokenId> drawn;
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(result.status(), absl::OkStatus());
    drawn.push_back(result->results[0].token);
    result = Run({.work = {Work(1, 3 + static_cast<uint32_t>(drawn.size()) - 1, {}, {})}});
  }
  // Preempted with four of them known, computed anew: the fifth must be the same.
  all.insert(all.end(), drawn.begin(), drawn.begin() + 4);
  start.slot = SlotId(2);
  result = Run({.ended = {SequenceId(1)}, .started = {start}, .work = {Work(1, 0, all, {5, 6})}});
  ASSERT_EQ(result.status(), absl::OkStatus());
  EXPECT_EQ(result->results[0].token, drawn[4]);
}

TEST_F(StepRunnerTest, PenaltiesSeePromptAndOutput) {
  SequenceStart start = Start(1, 0, 1);
  start.sampling.frequency_penalty = 100;  // nothing is said twice; the prompt does not count
  auto result = Run({.started = {start}, .work = {Work(1, 0, Tokens({5}), {0, 1})}});
  std::vector<uint32_t> said;
  for (uint32_t i = 1; i < 8; ++i) {
    ASSERT_EQ(result.status(), absl::OkStatus());
    said.push_back(result->results[0].token.value);
    result = Run({.work = {Work(1, i, {}, {})}});
  }
  std::sort(said.begin(), said.end());
  EXPECT_EQ(std::unique(said.begin(), said.end()), said.end());
}

TEST_F(StepRunnerTest, SaysWhichSequenceHasLogitsThatAreNotFinite) {
  model_.poison = 13;
  const auto result = Run({.started = {Start(1, 0, 1), Start(2, 1, 1)},
                           .work = {Work(1, 0, Tokens({13}), {0}), Work(2, 0, Tokens({3}), {1})}});
  ASSERT_EQ(result.status(), absl::OkStatus());
  EXPECT_TRUE(result->results[0].not_finite);
  EXPECT_FALSE(result->results[1].not_finite);
}

TEST_F(StepRunnerTest, RefusesAPlanThatSkipsAStep) {
  ASSERT_TRUE(Run({}).ok());
  ++step_;
  EXPECT_THAT(Refusal({}), HasSubstr("is number 3 after 1"));
}

TEST_F(StepRunnerTest, RefusesEveryBrokenRule) {
  const auto fresh = [&](StepPlan plan) {
    StepRunner runner(model_, clock_);
    plan.step = 1;
    return std::string(runner.Run(plan).status().message());
  };
  const SequenceStart start = Start(1, 0, 2);
  const auto work = [&](SequenceWork w) { return fresh({.started = {start}, .work = {w}}); };
  EXPECT_EQ(work(Work(1, 0, Tokens({1, 2}), {0})), "");
  EXPECT_THAT(fresh({.ended = {SequenceId(4)}}), HasSubstr("ends but never started"));
  EXPECT_THAT(fresh({.started = {Start(1, 3, 1)}}), HasSubstr("slot 3 of 3"));
  EXPECT_THAT(fresh({.started = {start, Start(2, 0, 1)}}), HasSubstr("slot in use"));
  EXPECT_THAT(fresh({.started = {start, Start(1, 1, 1)}}), HasSubstr("starts twice"));
  EXPECT_THAT(work(Work(2, 0, Tokens({1}), {0})), HasSubstr("never started"));
  EXPECT_THAT(work(Work(1, 1, Tokens({1}), {0})), HasSubstr("position 1 after 0"));
  EXPECT_THAT(work(Work(1, 0, {}, {0})), HasSubstr("none was sampled"));
  EXPECT_THAT(work(Work(1, 0, Tokens({64}), {0})), HasSubstr("token 64; the vocabulary has 64"));
  EXPECT_THAT(work(Work(1, 0, Tokens({1}), {8})), HasSubstr("block 8 of 8"));
  EXPECT_THAT(work(Work(1, 0, Tokens({1}), {3, 3})), HasSubstr("block in use"));
  EXPECT_THAT(work(Work(1, 0, Tokens({1, 2, 3, 4, 5}), {0})), HasSubstr("too few blocks"));
  EXPECT_THAT(fresh({.started = {start},
                     .work = {Work(1, 0, Tokens({1}), {0}), Work(1, 1, Tokens({1}), {})}}),
              HasSubstr("works twice"));
  EXPECT_THAT(work(Work(1, 0, std::vector<TokenId>(13, TokenId(1)), {0, 1, 2, 3})),
              HasSubstr("13 tokens"));
}

}  // namespace
}  // namespace tessera::engine

#include "services/cli/commands/up/restart_policy.h"

#include <vector>

#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

constexpr RestartLimits kLimits = {.delay_min = absl::Milliseconds(50),
                                   .delay_max = absl::Milliseconds(300),
                                   .served_well = absl::Seconds(10),
                                   .quick_failures_max = 5};

TEST(DecideRestart, DoublesThePauseUpToItsLimitAndThenGivesUp) {
  std::vector<int64_t> delays_ms;
  int failures = 0;
  for (int i = 0; i < 4; ++i) {
    const RestartDecision decision = DecideRestart(kLimits, failures, absl::Seconds(1));
    ASSERT_FALSE(decision.give_up) << i;
    failures = decision.quick_failures;
    delays_ms.push_back(absl::ToInt64Milliseconds(decision.delay));
  }
  EXPECT_EQ(delays_ms, (std::vector<int64_t>{50, 100, 200, 300}));
  EXPECT_TRUE(DecideRestart(kLimits, failures, absl::Seconds(1)).give_up);
}

TEST(DecideRestart, StartsOverAfterServingWell) {
  const RestartDecision decision = DecideRestart(kLimits, 4, absl::Seconds(10));
  EXPECT_FALSE(decision.give_up);
  EXPECT_EQ(decision.quick_failures, 1);
  EXPECT_EQ(decision.delay, absl::Milliseconds(50));
}

TEST(DecideRestart, AChildThatNeverServedIsAQuickFailure) {
  EXPECT_EQ(DecideRestart(kLimits, 2, absl::ZeroDuration()).quick_failures, 3);
}

TEST(DecideRestart, ManyFailuresDoNotOverflow) {
  RestartLimits limits = kLimits;
  limits.quick_failures_max = 2000000000;
  EXPECT_EQ(DecideRestart(limits, 1000000000, absl::ZeroDuration()).delay, limits.delay_max);
}

}  // namespace
}  // namespace tessera::cli

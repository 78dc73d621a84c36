#include "services/cli/commands/bench/arrivals.h"

#include <cmath>

#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

TEST(PoissonArrivals, TheSeedDecides) {
  const auto one = PoissonArrivals(10, absl::Seconds(10), 1);
  EXPECT_EQ(one, PoissonArrivals(10, absl::Seconds(10), 1));
  EXPECT_NE(one, PoissonArrivals(10, absl::Seconds(10), 2));
}

TEST(PoissonArrivals, ComeInOrderWithinTheDuration) {
  absl::Duration before = absl::ZeroDuration();
  for (const absl::Duration at : PoissonArrivals(50, absl::Seconds(4), 3)) {
    EXPECT_GE(at, before);
    EXPECT_LT(at, absl::Seconds(4));
    before = at;
  }
}

TEST(PoissonArrivals, GapsAreExponentialWithTheRate) {
  const auto arrivals = PoissonArrivals(100, absl::Seconds(1000), 5);
  const double n = static_cast<double>(arrivals.size());
  EXPECT_NEAR(n, 1e5, 5 * std::sqrt(1e5));  // five standard deviations of the count
  double over_mean = 0;
  for (size_t i = 1; i < arrivals.size(); ++i) {
    if (arrivals[i] - arrivals[i - 1] > absl::Milliseconds(10)) ++over_mean;
  }
  EXPECT_NEAR(over_mean / n, std::exp(-1), 5 * 0.5 / std::sqrt(n));
}

TEST(PoissonArrivals, TheirNumberHasALimit) {
  EXPECT_EQ(PoissonArrivals(1e9, absl::Seconds(10), 1).size(), kArrivalsMax);
}

}  // namespace
}  // namespace tessera::cli

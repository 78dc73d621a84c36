#include "engine/sampling/row_math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(FindMax, FindsTheLowestIndexOfTheLargestValueAtEverySize) {
  std::mt19937 random(1);
  for (size_t size : {1, 2, 3, 7, 8, 9, 1023, 1024, 1025, 4100}) {
    std::vector<float> row(size);
    // Few distinct values, so that ties are the rule.
    for (float& x : row) x = static_cast<float>(random() % 5) - 7.0f;
    const RowMax max = FindMax(row);
    const auto expected = std::max_element(row.begin(), row.end());
    EXPECT_EQ(max.value, *expected) << size;
    EXPECT_EQ(max.index, expected - row.begin()) << size;
    EXPECT_FALSE(max.has_nan);
  }
}

TEST(FindMax, SeesANanAtAnyPlace) {
  for (size_t at = 0; at < 1031; ++at) {
    std::vector<float> row(1031, 0.5f);
    row[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(FindMax(row).has_nan) << at;
  }
}

TEST(FindMax, TakesInfinitiesAsTheyAre) {
  std::vector<float> row(100, -kInf);
  EXPECT_EQ(FindMax(row).value, -kInf);
  row[99] = kInf;
  EXPECT_EQ(FindMax(row).value, kInf);
  EXPECT_EQ(FindMax(row).index, 99u);
}

TEST(ExpWeights, AreExponentialsWithinAFewRoundingErrors) {
  std::vector<float> row;
  for (float x = 0; x > -86; x -= 0.0137f) row.push_back(x);
  std::vector<float> weights(row.size());
  const double total = ExpWeights(row, 0.0f, 1.0f, weights);
  double expected_total = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double expected = std::exp(static_cast<double>(row[i]));
    EXPECT_NEAR(weights[i] / expected, 1.0, 4e-7) << row[i];
    expected_total += expected;
  }
  EXPECT_NEAR(total / expected_total, 1.0, 1e-6);
  EXPECT_EQ(ExpWeights(row, 0.0f, 1.0f, {}), total);
}

TEST(ExpWeights, AreOneAtTheMaximumAndZeroFarBelow) {
  const std::vector<float> row = {3.0f, -kInf, -1e30f, 2.0f, 3.0f};
  std::vector<float> weights(row.size());
  ExpWeights(row, 3.0f, 2.0f, weights);
  EXPECT_EQ(weights[0], 1.0f);
  EXPECT_EQ(weights[1], 0.0f);
  EXPECT_EQ(weights[2], 0.0f);
  EXPECT_NEAR(weights[3], std::exp(-2.0f), 1e-7);
  EXPECT_EQ(weights[4], 1.0f);
}

}  // namespace
}  // namespace tessera::engine

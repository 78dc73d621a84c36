#include "engine/layers/routing.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

float Sigmoid(float v) { return 1 / (1 + std::exp(-v)); }

struct Routed {
  std::vector<uint32_t> experts;
  std::vector<float> weights;
};

Routed Route(const MoeConfig& config, std::vector<float> logits, const std::vector<float>& bias) {
  Routed routed;
  routed.experts.resize(config.experts_per_token);
  routed.weights.resize(config.experts_per_token);
  std::vector<float> scratch(2 * config.experts);
  RouteToken(config, bias.data(), logits.data(), scratch.data(), routed.experts.data(),
             routed.weights.data());
  return routed;
}

TEST(RouteToken, BiasDecidesWhoWinsButNotTheWeights) {
  const MoeConfig config = {.experts = 4, .experts_per_token = 2, .routed_scaling = 2.5f};
  const Routed routed = Route(config, {0, 1, 2, -1}, {0, 0, 0, 5});
  EXPECT_EQ(routed.experts, (std::vector<uint32_t>{3, 2}));
  const float sum = Sigmoid(-1) + Sigmoid(2);
  EXPECT_NEAR(routed.weights[0], 2.5f * Sigmoid(-1) / sum, 1e-6);
  EXPECT_NEAR(routed.weights[1], 2.5f * Sigmoid(2) / sum, 1e-6);
}

TEST(RouteToken, WithoutNormalisingTheScoresAreTheWeights) {
  const MoeConfig config = {
      .experts = 3, .experts_per_token = 1, .routed_scaling = 2, .normalize_weights = false};
  EXPECT_NEAR(Route(config, {0, 1, 0}, {0, 0, 0}).weights[0], 2 * Sigmoid(1), 1e-6);
}

TEST(RouteToken, ATieGoesToTheLowestIndex) {
  const MoeConfig config = {.experts = 5, .experts_per_token = 3};
  EXPECT_EQ(Route(config, {1, 2, 2, 2, 2}, {0, 0, 0, 0, 0}).experts,
            (std::vector<uint32_t>{1, 2, 3}));
}

TEST(RouteToken, OnlyTheGroupsWithTheBestPairsStay) {
  // Group 0 has the single best expert, group 1 the best pair.
  const MoeConfig config = {.experts = 6, .experts_per_token = 2, .groups = 2, .groups_kept = 1};
  EXPECT_EQ(Route(config, {3, -9, -9, 1, 2, -9}, {0, 0, 0, 0, 0, 0}).experts,
            (std::vector<uint32_t>{4, 3}));
}

}  // namespace
}  // namespace tessera::engine

#include "engine/layers/routing.h"

#include <algorithm>
#include <cmath>

namespace tessera::engine {
namespace {

// Takes all but the best groups out of `choice`.
void KeepBestGroups(const MoeConfig& config, float* choice, float* group_scores) {
  const uint32_t size = config.experts / config.groups;
  for (uint32_t g = 0; g < config.groups; ++g) {
    float best = -INFINITY, second = -INFINITY;
    for (uint32_t i = g * size; i < (g + 1) * size; ++i) {
      if (choice[i] > best) {
        second = best;
        best = choice[i];
      } else {
        second = std::max(second, choice[i]);
      }
    }
    group_scores[g] = size > 1 ? best + second : best;
  }
  for (uint32_t g = 0; g < config.groups; ++g) {
    uint32_t better = 0;
    for (uint32_t other = 0; other < config.groups; ++other) {
      better += group_scores[other] > group_scores[g] ||
                (group_scores[other] == group_scores[g] && other < g);
    }
    if (better >= config.groups_kept) std::fill_n(choice + g * size, size, -INFINITY);
  }
}

}  // namespace

void RouteToken(const MoeConfig& config, const float* bias, float* logits, float* scratch,
                uint32_t* experts_out, float* weights_out) {
  float* const choice = scratch;
  for (uint32_t e = 0; e < config.experts; ++e) {
    logits[e] = 1.0f / (1.0f + std::exp(-logits[e]));
    choice[e] = logits[e] + bias[e];
  }
  if (config.groups > 1) KeepBestGroups(config, choice, scratch + config.experts);
  float sum = 0;
  for (uint32_t k = 0; k < config.experts_per_token; ++k) {
    uint32_t best = 0;
    for (uint32_t e = 1; e < config.experts; ++e) {
      if (choice[e] > choice[best]) best = e;
    }
    // If every choice left is NaN or -inf, `best` repeats expert 0; the logits then are NaN and the
    // step reports it.
    experts_out[k] = best;
    weights_out[k] = logits[best];
    sum += logits[best];
    choice[best] = -INFINITY;
  }
  const float scale =
      config.normalize_weights ? config.routed_scaling / (sum + 1e-20f) : config.routed_scaling;
  for (uint32_t k = 0; k < config.experts_per_token; ++k) weights_out[k] *= scale;
}

}  // namespace tessera::engine

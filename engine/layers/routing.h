#ifndef TESSERA_ENGINE_LAYERS_ROUTING_H_
#define TESSERA_ENGINE_LAYERS_ROUTING_H_

#include <cstdint>

#include "engine/weights/model_config.h"

namespace tessera::engine {

// Chooses the experts of one token.
//   scores = sigmoid(logits); choice = scores + bias
//   with groups: the groups_kept groups with the largest sum of their two best choices stay
//   the experts_per_token largest choices win, the lowest index on a tie
//   weights: the winners' scores (without bias), divided by their sum + 1e-20 if normalize_weights,
//   times routed_scaling
// logits [experts] is overwritten with scores. scratch: 2 * experts floats.
// experts_out, weights_out: [experts_per_token], by falling choice.
void RouteToken(const MoeConfig& config, const float* bias, float* logits, float* scratch,
                uint32_t* experts_out, float* weights_out);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_LAYERS_ROUTING_H_

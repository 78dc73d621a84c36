#ifndef TESSERA_ENGINE_LAYERS_MOE_LAYER_H_
#define TESSERA_ENGINE_LAYERS_MOE_LAYER_H_

#include <vector>

#include "engine/layers/layer.h"
#include "engine/weights/checkpoint.h"

namespace tessera::engine {

// LatentMoE: the router and the shared expert see the full vector, the routed experts its latent
// projection (the vector itself when the model has none).
//   l = fc1(x);  r = sum over chosen e of w_e down_e(relu(up_e(l))^2);  out = fc2(r) + shared(x)
// Pairs of (token, expert) are sorted by expert, so that each expert's weights are read once a
// step.
class MoeLayer final : public Layer {
 public:
  MoeLayer(const Checkpoint& checkpoint, uint32_t layer, const LayerLimits& limits, Arena& arena);
  void Forward(const StepContext& step, const float* x, float* residual) override;
  void ZeroSlot(uint32_t) override {}

 private:
  void Route(const StepContext& step);
  void RunExperts(const StepContext& step, int thread, float* out, size_t out_stride);

  const MoeConfig config_;
  const uint32_t inner_;  // latent width, or hidden
  PackedMatrix router_, latent_down_, latent_up_, shared_up_, shared_down_;
  std::vector<PackedMatrix> up_, down_;  // by expert
  const float* router_bias_ = nullptr;
  float* logits_ = nullptr;           // [rows, experts]
  float* latent_ = nullptr;           // [rows, inner]; unused without latent
  float* shared_ = nullptr;           // [rows, shared_width]
  float* gathered_ = nullptr;         // [pairs, inner]: each pair's input, by expert
  float* wide_ = nullptr;             // [pairs, width]
  float* expert_out_ = nullptr;       // [pairs, inner]
  float* combined_ = nullptr;         // [rows, inner]
  float* route_scratch_ = nullptr;    // [2 * experts]
  uint32_t* chosen_ = nullptr;        // [rows, experts_per_token]
  float* weights_ = nullptr;          // likewise
  uint32_t* pair_of_ = nullptr;       // likewise: where the pair stands by expert
  uint32_t* expert_begin_ = nullptr;  // [experts + 1]
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_LAYERS_MOE_LAYER_H_

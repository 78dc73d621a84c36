#ifndef TESSERA_ENGINE_LAYERS_MAMBA_LAYER_H_
#define TESSERA_ENGINE_LAYERS_MAMBA_LAYER_H_

#include "engine/layers/layer.h"
#include "engine/weights/checkpoint.h"

namespace tessera::engine {

// Mamba-2: in_proj, causal convolution, recurrence, gated grouped RMS norm (gate first), out_proj.
//   p = x Win^T, split z | x | B | C | dt;  (x,B,C) = silu(conv(x,B,C));  dt = softplus(dt +
//   dt_bias) S <- exp(-exp(A_log) dt) S + dt x B^T;  y = S C + D x;  out = norm(y silu(z)) Wout^T
// dt is not clamped. State per slot: [heads, head_dim, state] and [conv_kernel - 1, channels]
// float32.
class MambaLayer final : public Layer {
 public:
  MambaLayer(const Checkpoint& checkpoint, uint32_t layer, const LayerLimits& limits, float eps,
             Arena& arena);
  void Forward(const StepContext& step, const float* x, float* residual) override;
  void ZeroSlot(uint32_t slot) override;

  static uint64_t StateBytes(const MambaConfig& config);

 private:
  void Convolve(const StepContext& step, int thread);
  void Scan(const StepContext& step, int thread);

  const MambaConfig config_;
  const float eps_;
  PackedMatrix in_proj_, out_proj_;
  const float* conv_weight_ = nullptr;  // [conv_kernel, channels]
  const float* conv_bias_ = nullptr;
  const float* a_ = nullptr;  // -exp(A_log)
  const float* d_ = nullptr;
  const float* dt_bias_ = nullptr;
  const float* norm_ = nullptr;
  float* ssm_state_ = nullptr;   // [slots, heads, head_dim, state]
  float* conv_state_ = nullptr;  // [slots, conv_kernel - 1, channels]
  float* projected_ = nullptr;   // [rows, in_proj_rows]
  float* convolved_ = nullptr;   // [rows, channels]
  float* scanned_ = nullptr;     // [rows, inner]
  float* dt_ = nullptr;          // [heads, rows]
  size_t dt_stride_ = 0;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_LAYERS_MAMBA_LAYER_H_

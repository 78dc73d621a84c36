#ifndef TESSERA_ENGINE_LAYERS_MLP_LAYER_H_
#define TESSERA_ENGINE_LAYERS_MLP_LAYER_H_

#include "engine/layers/layer.h"
#include "engine/weights/checkpoint.h"

namespace tessera::engine {

// down(relu(up(x))^2), the dense layer of the smaller models.
class MlpLayer final : public Layer {
 public:
  MlpLayer(const Checkpoint& checkpoint, uint32_t layer, const LayerLimits& limits, Arena& arena);
  void Forward(const StepContext& step, const float* x, float* residual) override;
  void ZeroSlot(uint32_t) override {}

 private:
  PackedMatrix up_, down_;
  float* wide_ = nullptr;  // [rows, width]
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_LAYERS_MLP_LAYER_H_

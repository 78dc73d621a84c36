#include "engine/layers/mlp_layer.h"

#include "engine/layers/packing.h"

namespace tessera::engine {

MlpLayer::MlpLayer(const Checkpoint& checkpoint, uint32_t layer, const LayerLimits& limits,
                   Arena& arena) {
  up_ = Pack(checkpoint.Matrix(layer, MatrixRole::kUpProj), arena);
  down_ = Pack(checkpoint.Matrix(layer, MatrixRole::kDownProj), arena);
  wide_ = arena.Take<float>(size_t{limits.rows} * up_.rows);
}

void MlpLayer::Forward(const StepContext& step, const float* x, float* residual) {
  step.pool->Run(
      [&](int thread) { MatMulRelu2Part(step, thread, up_, x, up_.cols, step.rows, wide_); });
  step.pool->Run([&](int thread) {
    MatMulPart(step, thread, down_, wide_, up_.rows, step.rows, residual, up_.cols, /*add=*/true);
  });
}

}  // namespace tessera::engine

#include "engine/layers/mlp_layer.h"

#include "engine/kernels/vector/vector.h"
#include "engine/layers/packing.h"

namespace tessera::engine {

MlpLayer::MlpLayer(const Checkpoint& checkpoint, uint32_t layer, const LayerLimits& limits,
                   Arena& arena) {
  up_ = Pack(checkpoint.Matrix(layer, MatrixRole::kUpProj), arena);
  down_ = Pack(checkpoint.Matrix(layer, MatrixRole::kDownProj), arena);
  wide_ = arena.Take<float>(size_t{limits.rows} * up_.rows);
}

void MlpLayer::Forward(const StepContext& step, const float* x, float* residual) {
  step.pool->Run([&](int thread) {
    MatMulPart(step, thread, up_, x, up_.cols, step.rows, wide_, up_.rows);
    const ThreadPool::Range part = step.pool->Part(up_.rows, kMatMulRowBlock, thread);
    for (uint32_t r = 0; r < step.rows; ++r) {
      Relu2(step.level, wide_ + size_t{r} * up_.rows + part.begin, part.end - part.begin);
    }
  });
  step.pool->Run([&](int thread) {
    MatMulPart(step, thread, down_, wide_, up_.rows, step.rows, residual, up_.cols, /*add=*/true);
  });
}

}  // namespace tessera::engine

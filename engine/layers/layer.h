#ifndef TESSERA_ENGINE_LAYERS_LAYER_H_
#define TESSERA_ENGINE_LAYERS_LAYER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "engine/device/cpu/arena.h"
#include "engine/device/cpu/thread_pool.h"
#include "engine/kernels/common/cpu_level.h"
#include "engine/kernels/matmul/matmul.h"
#include "engine/kernels/vector/vector.h"

namespace tessera::engine {

// One sequence's part of a step: rows [row_begin, row_begin + tokens) of every [rows, ...] buffer.
struct StepChunk {
  uint32_t row_begin = 0;
  uint32_t tokens = 0;
  uint32_t position = 0;  // of the first token in its sequence
  uint32_t slot = 0;
  std::span<const uint32_t> block_table;
};

// What the layers of one step share.
struct StepContext {
  ThreadPool* pool = nullptr;
  CpuLevel level = CpuLevel::kReference;
  std::span<const StepChunk> chunks;
  uint32_t rows = 0;
  float* const* scratch = nullptr;  // per thread, for MatMul
};

// What bounds the buffers of a layer.
struct LayerLimits {
  uint32_t rows = 0;  // of one step
  uint32_t slots = 0;
  uint32_t blocks = 0;
  uint32_t block_tokens = 0;
  int threads = 1;
};

// A mixer. Not thread-safe: one step at a time.
class Layer {
 public:
  virtual ~Layer() = default;
  // residual[r] += mixer(x[r]).  x, residual: [rows, hidden].
  virtual void Forward(const StepContext& step, const float* x, float* residual) = 0;
  // Forgets what `slot` held.
  virtual void ZeroSlot(uint32_t slot) = 0;
};

// y[rows, w.rows] (+)= x w^T over this thread's part of the rows of `w`: called from inside a Run.
inline void MatMulPart(const StepContext& step, int thread, const PackedMatrix& w, const float* x,
                       size_t x_stride, uint32_t rows, float* y, size_t y_stride,
                       bool add = false) {
  const ThreadPool::Range part = step.pool->Part(w.rows, kMatMulRowBlock, thread);
  if (part.begin == part.end || rows == 0) return;
  MatMul(step.level, w, part.begin, part.end,
         {x, x_stride, rows, y, y_stride, add, step.scratch[thread]});
}

// y[rows, w.rows] = relu(x w^T)^2 over this thread's part: the first half of every MLP and expert.
inline void MatMulRelu2Part(const StepContext& step, int thread, const PackedMatrix& w,
                            const float* x, size_t x_stride, uint32_t rows, float* y) {
  MatMulPart(step, thread, w, x, x_stride, rows, y, w.rows);
  const ThreadPool::Range part = step.pool->Part(w.rows, kMatMulRowBlock, thread);
  for (uint32_t r = 0; r < rows; ++r) {
    Relu2(step.level, y + size_t{r} * w.rows + part.begin, part.end - part.begin);
  }
}

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_LAYERS_LAYER_H_

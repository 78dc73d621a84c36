#include "engine/layers/attention_layer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/kernels/vector/vector.h"
#include "engine/layers/packing.h"

namespace tessera::engine {

AttentionLayer::AttentionLayer(const Checkpoint& checkpoint, uint32_t layer,
                               const LayerLimits& limits, Arena& arena)
    : config_(checkpoint.config().layers[layer].attention), block_tokens_(limits.block_tokens) {
  q_proj_ = Pack(checkpoint.Matrix(layer, MatrixRole::kQProj), arena);
  k_proj_ = Pack(checkpoint.Matrix(layer, MatrixRole::kKProj), arena);
  v_proj_ = Pack(checkpoint.Matrix(layer, MatrixRole::kVProj), arena);
  o_proj_ = Pack(checkpoint.Matrix(layer, MatrixRole::kOProj), arena);
  const size_t pool =
      size_t{limits.blocks} * config_.kv_heads * limits.block_tokens * config_.head_dim;
  keys_ = arena.Take<float>(pool);
  values_ = arena.Take<float>(pool);
  q_ = arena.Take<float>(size_t{limits.rows} * q_proj_.rows);
  k_ = arena.Take<float>(size_t{limits.rows} * k_proj_.rows);
  v_ = arena.Take<float>(size_t{limits.rows} * v_proj_.rows);
  attended_ = arena.Take<float>(size_t{limits.rows} * q_proj_.rows);
  // No sequence can be longer than the pool.
  scores_stride_ = size_t{limits.blocks} * limits.block_tokens;
  scores_ = arena.Take<float>(scores_stride_ * limits.threads);
}

size_t AttentionLayer::PoolOffset(const StepChunk& chunk, uint32_t position,
                                  uint32_t kv_head) const {
  const size_t block = chunk.block_table[position / block_tokens_];
  return ((block * config_.kv_heads + kv_head) * block_tokens_ + position % block_tokens_) *
         config_.head_dim;
}

void AttentionLayer::StoreKeysAndValues(const StepContext& step) {
  const size_t bytes = config_.head_dim * sizeof(float);
  for (const StepChunk& chunk : step.chunks) {
    for (uint32_t t = 0; t < chunk.tokens; ++t) {
      const size_t row = size_t{chunk.row_begin + t} * k_proj_.rows;
      for (uint32_t h = 0; h < config_.kv_heads; ++h) {
        const size_t offset = PoolOffset(chunk, chunk.position + t, h);
        std::memcpy(keys_ + offset, k_ + row + size_t{h} * config_.head_dim, bytes);
        std::memcpy(values_ + offset, v_ + row + size_t{h} * config_.head_dim, bytes);
      }
    }
  }
}

void AttentionLayer::AttendRow(const StepContext& step, const StepChunk& chunk, uint32_t t,
                               uint32_t head, float* scores) {
  const uint32_t dim = config_.head_dim;
  const uint32_t kv_head = head / (config_.heads / config_.kv_heads);
  const uint32_t length = chunk.position + t + 1;
  const size_t row = size_t{chunk.row_begin + t} * q_proj_.rows + size_t{head} * dim;
  const float* const q = q_ + row;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  float most = -INFINITY;
  for (uint32_t begin = 0; begin < length; begin += block_tokens_) {
    const float* key = keys_ + PoolOffset(chunk, begin, kv_head);
    const uint32_t end = std::min(begin + block_tokens_, length);
    for (uint32_t i = begin; i < end; ++i, key += dim) {
      scores[i] = Dot(step.level, q, key, dim) * scale;
      most = std::max(most, scores[i]);
    }
  }
  const float sum = ExpSum(step.level, most, scores, length);
  float* const out = attended_ + row;
  std::fill_n(out, dim, 0.0f);
  for (uint32_t begin = 0; begin < length; begin += block_tokens_) {
    const float* value = values_ + PoolOffset(chunk, begin, kv_head);
    const uint32_t end = std::min(begin + block_tokens_, length);
    for (uint32_t i = begin; i < end; ++i, value += dim) {
      Axpy(step.level, scores[i], value, out, dim);
    }
  }
  Scale(step.level, 1.0f / sum, out, dim);
}

void AttentionLayer::Attend(const StepContext& step, int thread) {
  float* const scores = scores_ + scores_stride_ * thread;
  // Rows in turn over the threads: later rows of a prompt cost more, so contiguous parts would not
  // be fair.
  uint32_t item = 0;
  const uint32_t threads = static_cast<uint32_t>(step.pool->threads());
  for (const StepChunk& chunk : step.chunks) {
    for (uint32_t t = 0; t < chunk.tokens; ++t) {
      for (uint32_t head = 0; head < config_.heads; ++head, ++item) {
        if (item % threads == static_cast<uint32_t>(thread)) {
          AttendRow(step, chunk, t, head, scores);
        }
      }
    }
  }
}

void AttentionLayer::Forward(const StepContext& step, const float* x, float* residual) {
  const size_t hidden = q_proj_.cols;
  step.pool->Run([&](int thread) {
    MatMulPart(step, thread, q_proj_, x, hidden, step.rows, q_, q_proj_.rows);
    MatMulPart(step, thread, k_proj_, x, hidden, step.rows, k_, k_proj_.rows);
    MatMulPart(step, thread, v_proj_, x, hidden, step.rows, v_, v_proj_.rows);
  });
  StoreKeysAndValues(step);
  step.pool->Run([&](int thread) { Attend(step, thread); });
  step.pool->Run([&](int thread) {
    MatMulPart(step, thread, o_proj_, attended_, q_proj_.rows, step.rows, residual, hidden,
               /*add=*/true);
  });
}

}  // namespace tessera::engine

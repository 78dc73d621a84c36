#ifndef TESSERA_ENGINE_LAYERS_ATTENTION_LAYER_H_
#define TESSERA_ENGINE_LAYERS_ATTENTION_LAYER_H_

#include "engine/layers/layer.h"
#include "engine/weights/checkpoint.h"

namespace tessera::engine {

// Causal softmax attention without positions, grouped queries, over paged float32 keys and values:
// query head j uses KV head j / (heads / kv_heads). Pools: [blocks, kv_heads, block_tokens,
// head_dim].
class AttentionLayer final : public Layer {
 public:
  AttentionLayer(const Checkpoint& checkpoint, uint32_t layer, const LayerLimits& limits,
                 Arena& arena);
  void Forward(const StepContext& step, const float* x, float* residual) override;
  void ZeroSlot(uint32_t) override {}  // keys live in blocks, and only written ones are read

  static uint64_t KvBytesPerToken(const AttentionConfig& config) {
    return uint64_t{2} * config.kv_heads * config.head_dim * sizeof(float);
  }

 private:
  void StoreKeysAndValues(const StepContext& step);
  void Attend(const StepContext& step, int thread);
  void AttendRow(const StepContext& step, const StepChunk& chunk, uint32_t t, uint32_t head,
                 float* scores);
  size_t PoolOffset(const StepChunk& chunk, uint32_t position, uint32_t kv_head) const;

  const AttentionConfig config_;
  const uint32_t block_tokens_;
  PackedMatrix q_proj_, k_proj_, v_proj_, o_proj_;
  float* keys_ = nullptr;
  float* values_ = nullptr;
  float* q_ = nullptr;         // [rows, heads * head_dim]
  float* k_ = nullptr;         // [rows, kv_heads * head_dim]
  float* v_ = nullptr;         // likewise
  float* attended_ = nullptr;  // [rows, heads * head_dim]
  float* scores_ = nullptr;    // [threads, scores_stride_]
  size_t scores_stride_ = 0;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_LAYERS_ATTENTION_LAYER_H_

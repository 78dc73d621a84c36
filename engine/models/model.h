#ifndef TESSERA_ENGINE_MODELS_MODEL_H_
#define TESSERA_ENGINE_MODELS_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/core/ids.h"

namespace tessera::engine {

// What a model reserves when it is loaded; nothing is allocated afterwards.
struct ModelLimits {
  uint32_t slots = 1;            // sequences that hold state at once
  uint32_t blocks = 1;           // KV blocks in the pool
  uint32_t block_tokens = 16;    // tokens of one block
  uint32_t step_tokens_max = 1;  // tokens of one Forward over all chunks
  uint32_t logit_rows_max = 1;   // rows of logits of one Forward
  int threads = 0;               // 0: one a core
};

// The shape facts that the engine needs to account for memory and to check requests.
struct ModelShape {
  std::string architecture;  // architectures[0] of config.json
  uint32_t vocab = 0;
  uint32_t hidden = 0;
  uint32_t layers = 0;
  uint32_t context_tokens_max = 0;  // max_position_embeddings
  uint64_t kv_bytes_per_token = 0;
  uint64_t state_bytes_per_slot = 0;
  uint64_t weight_bytes = 0;
};

// The next tokens of one sequence: a piece of its prompt, or the last sampled token. Slot and block
// table belong to the sequence alone; tokens before `position` have been forwarded already.
struct SequenceChunk {
  SlotId slot;
  bool zero_slot = false;  // the sequence begins: clear the slot's state first
  uint32_t position = 0;
  std::span<const TokenId> tokens;          // at least one
  std::span<const BlockId> block_table;     // covers position + tokens.size() tokens
  std::span<const uint32_t> logit_offsets;  // which of `tokens` need logits, ascending
};

// Progress of loading: phase, bytes done, bytes in all.
using LoadProgress = std::function<void(const char* phase, uint64_t done, uint64_t total)>;

// A model on one device. Not thread-safe: one thread owns it. No two chunks of one Forward may
// share a slot. Results do not depend on how a sequence is cut into chunks or on its neighbours, up
// to float rounding.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelShape& shape() const = 0;
  virtual const ModelLimits& limits() const = 0;

  // Runs `chunks` and writes the logits asked for, chunk by chunk, row by row, to
  // `logits` [sum of logit_offsets, vocab] float32.
  // Errors: kInvalidArgument names the chunk and the rule it broke; nothing has changed then.
  virtual absl::Status Forward(std::span<const SequenceChunk> chunks, std::span<float> logits) = 0;
};

// Loads the checkpoint in `model_path` (hub layout) for the CPU. Everything is checked before
// anything is allocated. `warnings` (may be null) gets lines for an operator: unused tensors, a
// declared but absent MTP head.
absl::StatusOr<std::unique_ptr<Model>> LoadCpuModel(const std::string& model_path,
                                                    const ModelLimits& limits,
                                                    const LoadProgress& progress,
                                                    std::vector<std::string>* warnings);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_MODELS_MODEL_H_

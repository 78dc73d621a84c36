#ifndef TESSERA_ENGINE_PLANNER_MEMORY_PLAN_H_
#define TESSERA_ENGINE_PLANNER_MEMORY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/weights/model_config.h"
#include "engine/weights/quantization_config.h"

// What a worker needs, byte by byte, from config.json and the flags alone.

namespace tessera::engine {

enum class StateType : uint8_t { kInt8, kF16, kBf16, kF32 };

struct PlanOptions {
  uint64_t memory_bytes = 0;   // of one device
  uint32_t workers = 1;        // tensor parallel; experts are spread whole
  uint32_t max_model_len = 0;  // tokens of one sequence; 0: the model's context
  uint32_t max_sequences = 4;
  uint32_t step_tokens = 512;
  uint32_t block_tokens = 16;
  StateType kv_type = StateType::kBf16;          // kInt8 has a float32 scale per token and head
  StateType ssm_type = StateType::kF32;          // kF32 or kF16
  uint64_t context_bytes = uint64_t{512} << 20;  // device context and kernels
  uint64_t communicator_bytes = uint64_t{192} << 20;  // when there is more than one worker
};

struct PlanPart {
  std::string name;
  uint64_t bytes = 0;
  bool estimate = false;  // not exact arithmetic
};

struct PlanKnob {
  std::string change;  // "--kv-dtype int8"
  uint64_t bytes_freed = 0;
};

struct MemoryPlan {
  std::vector<PlanPart> parts;      // of the worker that holds most, KV pool included
  uint64_t weight_bytes = 0;        // of that worker
  uint64_t weight_bytes_model = 0;  // of the whole model, stored once
  // That a worker reads to decode one token of each of max_sequences sequences: all but the experts
  // that no token chooses, as expected of even routing, and the unused rows of the embedding.
  uint64_t weight_bytes_decode = 0;
  uint64_t kv_bytes_per_token = 0;        // of one worker
  uint64_t kv_tokens_wanted = 0;          // one sequence of max_model_len, in whole blocks
  uint64_t kv_tokens_fit = 0;             // the largest pool that the memory holds beside the rest
  uint64_t state_bytes_per_sequence = 0;  // SSM and convolution, one worker
  uint64_t total_bytes = 0;
  bool fits = false;
  uint64_t margin_bytes = 0;    // free when it fits
  uint64_t missing_bytes = 0;   // short of when it does not
  std::vector<PlanKnob> knobs;  // that free anything, most first
};

// Pure. Errors: kInvalidArgument when the options cannot be (a worker count that does not divide
// heads or groups, a length beyond the model's context).
absl::StatusOr<MemoryPlan> PlanMemory(const ModelConfig& model,
                                      const QuantizationConfig& quantization,
                                      const PlanOptions& options);

// "24GiB", "22.5GB", "512MiB", plain bytes.
absl::StatusOr<uint64_t> ParseBytes(const std::string& text);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_PLANNER_MEMORY_PLAN_H_

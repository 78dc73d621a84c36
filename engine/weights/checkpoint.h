#ifndef TESSERA_ENGINE_WEIGHTS_CHECKPOINT_H_
#define TESSERA_ENGINE_WEIGHTS_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/weights/model_config.h"
#include "engine/weights/weight_matrix.h"

namespace tessera::engine {

// A Linear of a layer. Shapes are [out, in]; H hidden, W expert width, L latent (H when there is
// none), S shared width.
enum class MatrixRole : uint8_t {
  kInProj,      // mamba     [in_proj_rows, H]
  kOutProj,     // mamba     [H, inner]
  kQProj,       // attention [heads * head_dim, H]
  kKProj,       // attention [kv_heads * head_dim, H]
  kVProj,       // attention [kv_heads * head_dim, H]
  kOProj,       // attention [H, heads * head_dim]
  kUpProj,      // mlp       [width, H]
  kDownProj,    // mlp       [H, width]
  kRouter,      // moe       [experts, H]
  kLatentDown,  // moe with latent: fc1 [L, H]
  kLatentUp,    // moe with latent: fc2 [H, L]
  kSharedUp,    // moe with shared expert [S, H]
  kSharedDown,  // moe with shared expert [H, S]
};

// A matrix of one routed expert.
enum class ExpertRole : uint8_t {
  kUp,    // [W, L]
  kDown,  // [L, W]
};

// A small tensor of a layer.
enum class VectorRole : uint8_t {
  kNorm,        // every kind [H]
  kConvWeight,  // mamba [conv_channels, conv_kernel]; the last column meets the current token
  kConvBias,    // mamba [conv_channels]; zeros when the model has none
  kALog,        // mamba [heads]
  kD,           // mamba [heads]
  kDtBias,      // mamba [heads]
  kMixerNorm,   // mamba [inner]
  kRouterBias,  // moe   [experts]: e_score_correction_bias
};

// A checkpoint in hub layout (config.json, model.safetensors or shards with an index), open for
// reading. Open checks everything - names, shapes, types, sizes, ranges - so that what comes after
// cannot fail and cannot read outside a file. Asking for a role that a layer does not have is our
// own bug and aborts.
//
// Ownership: the views of Matrix, ExpertMatrix, Embeddings and LmHead point into the mapped files
// and live as long as the Checkpoint. Files must not be shortened while they are mapped.
// Threading: immutable after Open; any number of threads may read.
// Cost: Open reads headers only (tens of megabytes for 120,000 tensors); weights are paged in when
// touched.
class Checkpoint {
 public:
  // Errors, each naming the tensor or file and the remedy: kNotFound: a file is absent;
  // kInvalidArgument: configuration or contents are wrong; kUnimplemented: a format or an
  // architecture that is not supported.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const std::string& model_dir);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const ModelConfig& config() const;

  WeightMatrix Embeddings() const;       // [vocab, hidden]
  WeightMatrix LmHead() const;           // [vocab, hidden]; the embeddings when they are tied
  std::vector<float> FinalNorm() const;  // [hidden]

  WeightMatrix Matrix(uint32_t layer, MatrixRole role) const;
  WeightMatrix ExpertMatrix(uint32_t layer, uint32_t expert, ExpertRole role) const;
  std::vector<float> Vector(uint32_t layer, VectorRole role) const;  // a float32 copy

  // Bytes of all tensors that the model uses, as stored.
  uint64_t weight_bytes() const;
  uint64_t tensor_count() const;  // in the files, used or not
  // Tensors named mtp.* are in the files. They are not used yet.
  bool has_mtp() const;
  // Tensors that nothing asked for, in order; without mtp.* and activation or KV scales.
  const std::vector<std::string>& unused_tensors() const;
  // Lines for an operator: unused tensors, a draft head that is declared but absent.
  std::vector<std::string> Warnings() const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WEIGHTS_CHECKPOINT_H_

#ifndef TESSERA_ENGINE_WEIGHTS_MODEL_CONFIG_H_
#define TESSERA_ENGINE_WEIGHTS_MODEL_CONFIG_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// config.json of a Nemotron-H checkpoint, resolved: every number of every layer is here, nothing is
// left to a default further down. Values only; no file stays open.

namespace tessera::engine {

// Upper limits of what a configuration may ask for. They are far above any published model and low
// enough that no product of two of them with an element size overflows 64 bits.
inline constexpr size_t kConfigBytesMax = size_t{64} << 20;
inline constexpr uint32_t kLayersMax = 1024;
inline constexpr uint32_t kHiddenMax = 1u << 16;
inline constexpr uint32_t kVocabMax = 1u << 20;
inline constexpr uint32_t kHeadsMax = 1024;
inline constexpr uint32_t kHeadDimMax = 1024;
inline constexpr uint32_t kStateMax = 1024;
inline constexpr uint32_t kConvKernelMax = 16;
inline constexpr uint32_t kWidthMax = 1u << 20;
inline constexpr uint32_t kExpertsMax = 4096;
inline constexpr uint32_t kExpertsPerTokenMax = 256;
inline constexpr uint32_t kContextTokensMax = 1u << 24;
inline constexpr uint32_t kEndIdsMax = 64;

enum class LayerKind : uint8_t { kMamba, kAttention, kMoe, kMlp };

// "mamba", "attention", "moe", "mlp".
std::string_view LayerKindName(LayerKind kind);

// What a dense MLP, an expert or a shared expert does between its two matrices.
enum class Activation : uint8_t { kRelu2 };

struct MambaConfig {
  uint32_t heads = 0;
  uint32_t head_dim = 0;
  uint32_t groups = 0;  // divides heads; also the groups of the gated norm
  uint32_t state = 0;   // ssm_state_size of this layer
  uint32_t conv_kernel = 0;
  uint32_t chunk = 0;  // chunk_size of the prefill algorithm; only its rounding depends on it
  bool conv_bias = true;

  uint32_t inner() const { return heads * head_dim; }
  uint32_t conv_channels() const { return inner() + 2 * groups * state; }
  // Rows of in_proj in order: z inner(), x inner(), B groups*state, C groups*state, dt heads.
  uint32_t in_proj_rows() const { return inner() + conv_channels() + heads; }
};

struct AttentionConfig {
  uint32_t heads = 0;
  uint32_t kv_heads = 0;  // divides heads
  uint32_t head_dim = 0;
};

struct MoeConfig {
  uint32_t experts = 0;
  uint32_t experts_per_token = 0;
  uint32_t expert_width = 0;
  uint32_t latent = 0;        // 0: experts work on the hidden vector itself
  uint32_t shared_width = 0;  // 0: no shared expert
  float routed_scaling = 1.0f;
  uint32_t groups = 1;            // n_group; divides experts
  uint32_t groups_kept = 1;       // topk_group; at most groups
  bool normalize_weights = true;  // norm_topk_prob
  Activation activation = Activation::kRelu2;
};

struct MlpConfig {
  uint32_t width = 0;
  Activation activation = Activation::kRelu2;
};

// One layer. Only the member that `kind` names has meaning; the others are zero.
struct LayerConfig {
  LayerKind kind = LayerKind::kMamba;
  MambaConfig mamba;
  AttentionConfig attention;
  MoeConfig moe;
  MlpConfig mlp;
};

// What generation_config.json says about sampling when a request does not.
struct GenerationDefaults {
  std::optional<bool> do_sample;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<uint32_t> top_k;
  std::optional<float> repetition_penalty;
};

struct ModelConfig {
  std::string architecture;  // architectures[0]
  std::string model_type;
  uint32_t vocab = 0;
  uint32_t hidden = 0;
  uint32_t context_tokens_max = 0;  // max_position_embeddings
  float norm_eps = 1e-5f;
  bool tie_word_embeddings = false;  // lm_head is the embedding
  bool residual_in_fp32 = false;
  std::string ssm_cache_dtype;  // mamba_ssm_cache_dtype; "float32" when absent
  std::vector<LayerConfig> layers;

  std::optional<uint32_t> bos_id;
  std::optional<uint32_t> pad_id;
  std::vector<uint32_t> eos_ids;  // union of config.json and generation_config.json, ascending
  GenerationDefaults generation;

  // num_nextn_predict_layers: draft heads that the configuration declares. Whether the file holds
  // them is Checkpoint::has_mtp.
  uint32_t mtp_layers_declared = 0;
  std::vector<LayerConfig> mtp_layers;  // of mtp_block_configs; may be empty

  // Largest of any layer, for buffers; 0 when no layer is of that kind.
  uint32_t ExpertWidthMax() const;
  uint32_t ExpertsPerTokenMax() const;
  uint32_t LayerCount(LayerKind kind) const;
};

// Reads model_dir/config.json and, if present, model_dir/generation_config.json.
// Errors: kNotFound: no such file; kInvalidArgument names field, value, limit and remedy.
absl::StatusOr<ModelConfig> LoadModelConfig(const std::string& model_dir);

// The same from text. `generation_json` may be empty. Accepts what Python's json module writes,
// NaN and +-Infinity included.
absl::StatusOr<ModelConfig> ParseModelConfig(std::string_view config_json,
                                             std::string_view generation_json);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WEIGHTS_MODEL_CONFIG_H_

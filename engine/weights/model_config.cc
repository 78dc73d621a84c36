#include "engine/weights/model_config.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "engine/weights/concat.h"
#include "engine/weights/json_text.h"

namespace tessera::engine {
namespace {

using nlohmann::json;

constexpr std::string_view kArchitectures[] = {"NemotronHForCausalLM",
                                               "NemotronHPuzzleForCausalLM"};
constexpr std::string_view kConfigName = "config.json: ";

absl::Status Unsupported(const std::string& path, const json& value, std::string_view supported) {
  return absl::UnimplementedError(
      Concat(path, ": is ", Excerpt(value), "; supported: ", supported));
}

absl::StatusOr<LayerKind> KindOf(std::string_view name, const std::string& path) {
  if (name == "mamba" || name == "linear_attention") return LayerKind::kMamba;
  if (name == "attention" || name == "full_attention") return LayerKind::kAttention;
  if (name == "moe") return LayerKind::kMoe;
  if (name == "mlp") return LayerKind::kMlp;
  return absl::InvalidArgumentError(
      Concat(path, ": is \"", name,
             "\"; must be mamba (linear_attention), attention (full_attention), moe or mlp"));
}

absl::Status CheckLayerCount(size_t count, std::string_view field) {
  if (count >= 1 && count <= kLayersMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat(kConfigName, field, ": describes ", count, " layers; must be from 1 to ", kLayersMax));
}

// A layer before its numbers are resolved.
struct LayerSource {
  LayerKind kind;
  const json* block = nullptr;  // its own object, when it has one
  std::string path;
};

absl::StatusOr<std::vector<LayerSource>> FromBlocks(const json& blocks, std::string_view field) {
  if (!blocks.is_array()) {
    return absl::InvalidArgumentError(Concat(kConfigName, field, ": must be a list of objects"));
  }
  if (absl::Status s = CheckLayerCount(blocks.size(), field); !s.ok()) return s;
  std::vector<LayerSource> layers;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string path = Concat(kConfigName, field, "[", i, "].");
    const json& block = blocks[i];
    const auto type = block.is_object() ? block.find("block_type") : block.end();
    if (!block.is_object() || type == block.end() || !type->is_string()) {
      return absl::InvalidArgumentError(Concat(path, "block_type: is missing or not a string"));
    }
    auto kind = KindOf(type->get_ref<const std::string&>(), Concat(path, "block_type"));
    if (!kind.ok()) return kind.status();
    layers.push_back({*kind, &block, path});
  }
  return layers;
}

absl::StatusOr<std::vector<LayerSource>> FromNames(const json& names, const std::string& path) {
  if (!names.is_array()) {
    return absl::InvalidArgumentError(Concat(path, ": must be a list of strings"));
  }
  if (absl::Status s = CheckLayerCount(names.size(), path.substr(kConfigName.size())); !s.ok()) {
    return s;
  }
  std::vector<LayerSource> layers;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string at = Concat(path, "[", i, "]");
    if (!names[i].is_string()) {
      return absl::InvalidArgumentError(Concat(at, ": must be a string"));
    }
    auto kind = KindOf(names[i].get_ref<const std::string&>(), at);
    if (!kind.ok()) return kind.status();
    layers.push_back({*kind, nullptr, {}});
  }
  return layers;
}

// "MEM*E|-/*E": `|` separates pipeline stages, what follows `/` belongs to the draft head.
absl::StatusOr<std::vector<LayerSource>> FromPattern(const json& pattern, const std::string& path) {
  if (!pattern.is_string()) {
    return absl::InvalidArgumentError(Concat(path, ": must be a string"));
  }
  std::vector<LayerSource> layers;
  for (char c : pattern.get_ref<const std::string&>()) {
    if (c == '/') break;
    if (c == '|') continue;
    LayerKind kind;
    switch (c) {
      case 'M':
        kind = LayerKind::kMamba;
        break;
      case '*':
        kind = LayerKind::kAttention;
        break;
      case 'E':
        kind = LayerKind::kMoe;
        break;
      case '-':
        kind = LayerKind::kMlp;
        break;
      default:
        return absl::InvalidArgumentError(
            Concat(path, ": has '", std::string(1, c), "' for layer ", layers.size(),
                   "; must be M (mamba), * (attention), E (moe) or - (mlp)"));
    }
    layers.push_back({kind, nullptr, {}});
    if (layers.size() > kLayersMax) break;
  }
  if (absl::Status s = CheckLayerCount(layers.size(), path.substr(kConfigName.size())); !s.ok()) {
    return s;
  }
  return layers;
}

absl::StatusOr<std::vector<LayerSource>> ListLayers(const JsonFields& fields) {
  if (const json* blocks = fields.Find({"block_configs"}); blocks && !blocks->empty()) {
    return FromBlocks(*blocks, "block_configs");
  }
  const JsonFields::Names kNames = {"layers_block_type", "layer_types"};
  if (const json* names = fields.Find(kNames); names && !names->empty()) {
    return FromNames(*names, fields.PathOf(kNames));
  }
  if (const json* pattern = fields.Find({"hybrid_override_pattern"})) {
    return FromPattern(*pattern, fields.PathOf({"hybrid_override_pattern"}));
  }
  return absl::InvalidArgumentError(Concat(
      kConfigName,
      "has none of block_configs, layers_block_type, layer_types and hybrid_override_pattern, so "
      "the order of the layers is unknown"));
}

// A flag that the models of this family do not set; refused rather than ignored.
void RefuseFlag(JsonFields& fields, JsonFields::Names names) {
  if (fields.Bool(names, false)) {
    fields.Fail(Unsupported(fields.PathOf(names), json(true), "false"));
  }
}

void RequireActivation(JsonFields& fields, JsonFields::Names names, std::string_view wanted) {
  if (fields.String(names, wanted) != wanted) {
    fields.Fail(Unsupported(fields.PathOf(names), *fields.Find(names), wanted));
  }
}

void RequireDivides(JsonFields& fields, JsonFields::Names part, uint32_t divisor,
                    std::string_view whole_name, uint32_t whole) {
  if (divisor != 0 && whole % divisor == 0) return;
  fields.Fail(absl::InvalidArgumentError(Concat(
      fields.PathOf(part), ": is ", divisor, ", which does not divide ", whole_name, " ", whole)));
}

MambaConfig ResolveMamba(JsonFields& fields) {
  MambaConfig mamba;
  mamba.heads = fields.Uint({"mamba_num_heads"}, 1, kHeadsMax);
  mamba.head_dim = fields.Uint({"mamba_head_dim"}, 1, kHeadDimMax);
  const JsonFields::Names kGroups = {"n_groups", "mamba_n_groups"};
  mamba.groups = fields.Uint(kGroups, 1, kHeadsMax);
  mamba.state = fields.Uint({"ssm_state_size", "mamba_d_state"}, 1, kStateMax);
  mamba.conv_kernel = fields.Uint({"conv_kernel", "mamba_d_conv"}, 2, kConvKernelMax, 4);
  mamba.chunk = fields.Uint({"chunk_size", "mamba_chunk_size"}, 1, 1u << 16, 128);
  mamba.conv_bias = fields.Bool({"use_conv_bias", "mamba_conv_bias"}, true);
  RequireDivides(fields, kGroups, mamba.groups, "mamba_num_heads", mamba.heads);
  RefuseFlag(fields, {"use_bias"});
  RefuseFlag(fields, {"mamba_proj_bias"});
  RequireActivation(fields, {"mamba_hidden_act"}, "silu");
  const JsonFields::Names kLimit = {"time_step_limit", "mamba_dt_limit"};
  if (const json* limit = fields.Find(kLimit)) {
    const bool pair = limit->is_array() && limit->size() == 2;
    const auto low = pair ? NumberOf((*limit)[0]) : std::nullopt;
    const auto high = pair ? NumberOf((*limit)[1]) : std::nullopt;
    if (!low || !high || !(*low <= 0) || !(std::isinf(*high) && *high > 0)) {
      fields.Fail(Unsupported(fields.PathOf(kLimit), *limit, "[0.0, Infinity]"));
    }
  }
  return mamba;
}

AttentionConfig ResolveAttention(JsonFields& fields, uint32_t hidden, uint32_t context) {
  AttentionConfig attention;
  const JsonFields::Names kKvHeads = {"num_key_value_heads"};
  attention.heads = fields.Uint({"num_attention_heads"}, 1, kHeadsMax);
  attention.kv_heads = fields.Uint(kKvHeads, 1, kHeadsMax, attention.heads);
  const uint32_t even = hidden / std::max(attention.heads, 1u);
  attention.head_dim = fields.Uint({"head_dim", "attention_head_dim"}, 1, kHeadDimMax, even);
  if (attention.head_dim < 1 || attention.head_dim > kHeadDimMax) {
    fields.Fail(absl::InvalidArgumentError(
        Concat(fields.PathOf({"head_dim"}), ": is missing, and hidden_size / ",
               "num_attention_heads is ", even, "; must be from 1 to ", kHeadDimMax)));
  }
  RequireDivides(fields, kKvHeads, attention.kv_heads, "num_attention_heads", attention.heads);
  RefuseFlag(fields, {"attention_bias"});
  if (const json* window = fields.Find({"sliding_window"})) {
    const auto tokens = NumberOf(*window);
    if (!tokens || !(*tokens >= context)) {
      fields.Fail(Unsupported(fields.PathOf({"sliding_window"}), *window,
                              "null, or at least max_position_embeddings"));
    }
  }
  return attention;
}

MoeConfig ResolveMoe(JsonFields& fields) {
  MoeConfig moe;
  const JsonFields::Names kPerToken = {"num_experts_per_tok"};
  const JsonFields::Names kGroups = {"n_group"};
  moe.experts = fields.Uint({"n_routed_experts"}, 1, kExpertsMax);
  moe.experts_per_token = fields.Uint(kPerToken, 1, kExpertsPerTokenMax);
  moe.expert_width = fields.Uint({"moe_intermediate_size"}, 1, kWidthMax);
  moe.latent = fields.Uint({"moe_latent_size"}, 1, kWidthMax, 0);
  if (fields.Uint({"n_shared_experts"}, 0, kExpertsMax, 1) > 0) {
    moe.shared_width = fields.Uint({"moe_shared_expert_intermediate_size"}, 1, kWidthMax);
  }
  moe.routed_scaling = static_cast<float>(fields.Float({"routed_scaling_factor"}, 1e-6, 1e6, 1.0));
  moe.groups = fields.Uint(kGroups, 1, kExpertsMax, 1);
  moe.groups_kept = fields.Uint({"topk_group"}, 1, moe.groups, 1);
  moe.normalize_weights = fields.Bool({"norm_topk_prob"}, true);
  RefuseFlag(fields, {"mlp_bias"});
  RequireActivation(fields, {"mlp_hidden_act"}, "relu2");
  RequireDivides(fields, kGroups, moe.groups, "n_routed_experts", moe.experts);
  if (!fields.status().ok()) return moe;
  const uint32_t choosable = moe.experts / moe.groups * moe.groups_kept;
  if (moe.experts_per_token > choosable) {
    fields.Fail(absl::InvalidArgumentError(
        Concat(fields.PathOf(kPerToken), ": is ", moe.experts_per_token, ", but only ", choosable,
               " experts can be chosen from (n_routed_experts / n_group * "
               "topk_group)")));
  }
  return moe;
}

absl::StatusOr<LayerConfig> ResolveLayer(const JsonFields& global, const LayerSource& source,
                                         uint32_t hidden, uint32_t context) {
  JsonFields fields = source.block != nullptr ? global.Within(*source.block, source.path) : global;
  LayerConfig layer;
  layer.kind = source.kind;
  switch (source.kind) {
    case LayerKind::kMamba:
      layer.mamba = ResolveMamba(fields);
      break;
    case LayerKind::kAttention:
      layer.attention = ResolveAttention(fields, hidden, context);
      break;
    case LayerKind::kMoe:
      layer.moe = ResolveMoe(fields);
      break;
    case LayerKind::kMlp:
      layer.mlp.width = fields.Uint({"intermediate_size"}, 1, kWidthMax);
      RefuseFlag(fields, {"mlp_bias"});
      RequireActivation(fields, {"mlp_hidden_act"}, "relu2");
      break;
  }
  if (!fields.status().ok()) return fields.status();
  return layer;
}

absl::StatusOr<std::string> ReadArchitecture(const json& config) {
  const auto list = config.find("architectures");
  if (list == config.end() || !list->is_array() || list->empty() || !(*list)[0].is_string()) {
    return absl::InvalidArgumentError(Concat(
        kConfigName,
        "architectures: is missing or not a list of names; known: ", Join(kArchitectures, ", ")));
  }
  std::string name = (*list)[0].get<std::string>();
  if (std::find(std::begin(kArchitectures), std::end(kArchitectures), name) ==
      std::end(kArchitectures)) {
    return absl::UnimplementedError(
        Concat(kConfigName, "architectures[0]: is ", Excerpt((*list)[0]),
               ", which is not supported; known: ", Join(kArchitectures, ", ")));
  }
  return name;
}

// One id or a list of them.
void AddEndIds(JsonFields& fields, uint32_t vocab, std::set<uint32_t>& ids) {
  const json* value = fields.Find({"eos_token_id"});
  if (value == nullptr) return;
  const std::string path = fields.PathOf({"eos_token_id"});
  const json list = value->is_array() ? *value : json::array({*value});
  if (list.size() > kEndIdsMax) {
    fields.Fail(absl::InvalidArgumentError(
        Concat(path, ": has ", list.size(), " ids; the limit is ", kEndIdsMax)));
    return;
  }
  for (const json& id : list) {
    const auto number = id.is_number_integer() ? NumberOf(id) : std::nullopt;
    if (!number || *number < 0 || *number >= vocab) {
      fields.Fail(absl::InvalidArgumentError(
          Concat(path, ": has ", Excerpt(id), "; must be ids from 0 to ", vocab - 1)));
      return;
    }
    ids.insert(static_cast<uint32_t>(*number));
  }
}

std::optional<uint32_t> OptionalId(JsonFields& fields, JsonFields::Names names, uint32_t vocab) {
  const json* value = fields.Find(names);
  if (value == nullptr) return std::nullopt;
  // Some files write -1 for "none".
  if (value->is_number_integer() && value->get<double>() < 0) return std::nullopt;
  return fields.Uint(names, 0, vocab - 1);
}

absl::Status ReadGeneration(std::string_view text, uint32_t vocab, GenerationDefaults& out,
                            std::set<uint32_t>& end_ids) {
  auto parsed = ParsePythonJson(text, "generation_config.json");
  if (!parsed.ok()) return parsed.status();
  JsonFields fields(*parsed, "generation_config.json: ");
  AddEndIds(fields, vocab, end_ids);
  if (fields.Find({"do_sample"})) out.do_sample = fields.Bool({"do_sample"}, false);
  const auto optional_float = [&](JsonFields::Names names, double min,
                                  double max) -> std::optional<float> {
    if (fields.Find(names) == nullptr) return std::nullopt;
    return static_cast<float>(fields.Float(names, min, max, min));
  };
  out.temperature = optional_float({"temperature"}, 0.0, 100.0);
  out.top_p = optional_float({"top_p"}, 0.0, 1.0);
  out.repetition_penalty = optional_float({"repetition_penalty"}, 0.01, 100.0);
  if (fields.Find({"top_k"})) out.top_k = fields.Uint({"top_k"}, 0, kVocabMax, 0);
  return fields.status();
}

absl::Status ReadMtp(JsonFields& fields, ModelConfig& model) {
  model.mtp_layers_declared = fields.Uint({"num_nextn_predict_layers"}, 0, 64, 0);
  const json* blocks = fields.Find({"mtp_block_configs"});
  if (blocks == nullptr || blocks->empty()) return fields.status();
  auto sources = FromBlocks(*blocks, "mtp_block_configs");
  if (!sources.ok()) return sources.status();
  for (const LayerSource& source : *sources) {
    auto layer = ResolveLayer(fields, source, model.hidden, model.context_tokens_max);
    if (!layer.ok()) return layer.status();
    model.mtp_layers.push_back(*layer);
  }
  return fields.status();
}

}  // namespace

std::string_view LayerKindName(LayerKind kind) {
  switch (kind) {
    case LayerKind::kMamba:
      return "mamba";
    case LayerKind::kAttention:
      return "attention";
    case LayerKind::kMoe:
      return "moe";
    case LayerKind::kMlp:
      return "mlp";
  }
  return "?";
}

uint32_t ModelConfig::ExpertWidthMax() const {
  uint32_t width = 0;
  for (const LayerConfig& layer : layers) width = std::max(width, layer.moe.expert_width);
  return width;
}

uint32_t ModelConfig::ExpertsPerTokenMax() const {
  uint32_t count = 0;
  for (const LayerConfig& layer : layers) count = std::max(count, layer.moe.experts_per_token);
  return count;
}

uint32_t ModelConfig::LayerCount(LayerKind kind) const {
  return static_cast<uint32_t>(std::count_if(
      layers.begin(), layers.end(), [kind](const LayerConfig& l) { return l.kind == kind; }));
}

absl::StatusOr<ModelConfig> ParseModelConfig(std::string_view config_json,
                                             std::string_view generation_json) {
  auto parsed = ParsePythonJson(config_json, "config.json");
  if (!parsed.ok()) return parsed.status();
  auto architecture = ReadArchitecture(*parsed);
  if (!architecture.ok()) return architecture.status();

  ModelConfig model;
  JsonFields fields(*parsed, std::string(kConfigName));
  model.architecture = *std::move(architecture);
  model.model_type = fields.String({"model_type"}, "");
  model.vocab = fields.Uint({"vocab_size"}, 1, kVocabMax);
  model.hidden = fields.Uint({"hidden_size"}, 1, kHiddenMax);
  model.context_tokens_max = fields.Uint({"max_position_embeddings"}, 1, kContextTokensMax);
  model.norm_eps = static_cast<float>(
      fields.Float({"layer_norm_epsilon", "norm_eps", "rms_norm_eps"}, 1e-12, 0.1, 1e-5));
  model.tie_word_embeddings = fields.Bool({"tie_word_embeddings"}, false);
  model.residual_in_fp32 = fields.Bool({"residual_in_fp32"}, false);
  model.ssm_cache_dtype = fields.String({"mamba_ssm_cache_dtype"}, "float32");
  model.bos_id = OptionalId(fields, {"bos_token_id"}, model.vocab);
  model.pad_id = OptionalId(fields, {"pad_token_id"}, model.vocab);
  std::set<uint32_t> end_ids;
  AddEndIds(fields, model.vocab, end_ids);
  if (!fields.status().ok()) return fields.status();

  auto sources = ListLayers(fields);
  if (!sources.ok()) return sources.status();
  for (const LayerSource& source : *sources) {
    auto layer = ResolveLayer(fields, source, model.hidden, model.context_tokens_max);
    if (!layer.ok()) return layer.status();
    model.layers.push_back(*layer);
  }
  if (absl::Status s = ReadMtp(fields, model); !s.ok()) return s;
  if (!generation_json.empty()) {
    absl::Status s = ReadGeneration(generation_json, model.vocab, model.generation, end_ids);
    if (!s.ok()) return s;
  }
  model.eos_ids.assign(end_ids.begin(), end_ids.end());
  return model;
}

absl::StatusOr<ModelConfig> LoadModelConfig(const std::string& model_dir) {
  auto config = ReadTextFile(Concat(model_dir, "/config.json"), kConfigBytesMax);
  if (!config.ok()) return config.status();
  auto generation = ReadTextFile(Concat(model_dir, "/generation_config.json"), kConfigBytesMax);
  if (!generation.ok() && !absl::IsNotFound(generation.status())) return generation.status();
  return ParseModelConfig(*config, generation.ok() ? std::string_view(*generation) : "");
}

}  // namespace tessera::engine

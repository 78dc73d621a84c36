#include "engine/planner/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "engine/weights/concat.h"

namespace tessera::engine {
namespace {

constexpr uint64_t kGraphBytes = uint64_t{8} << 20;  // of one captured batch size

uint64_t Ceil(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

uint64_t TypeBytes(StateType type) {
  return type == StateType::kInt8 ? 1 : type == StateType::kF32 ? 4 : 2;
}

// Adds the bytes of matrices by part, for one worker and for the whole model.
class WeightSum {
 public:
  WeightSum(const QuantizationConfig& quantization, const PlanOptions& options)
      : quantization_(quantization), workers_(options.workers), batch_(options.max_sequences) {}

  // [rows, cols] of which a worker holds [rows_held, cols_held], `copies` times (experts), of which
  // a decode step reads the share `read`.
  void Matrix(const std::string& part, const std::string& path, ModuleClass kind, uint64_t rows,
              uint64_t cols, uint64_t rows_held, uint64_t cols_held, uint64_t copies = 1,
              uint64_t copies_held = 1, double read = 1.0) {
    auto format = quantization_.FormatOf(path, kind);
    if (!format.ok()) {
      if (status_.ok()) status_ = format.status();
      return;
    }
    model_ += StoredMatrixBytes(*format, rows, cols) * copies;
    const uint64_t held = StoredMatrixBytes(*format, rows_held, cols_held) * copies_held;
    held_[part] += held;
    read_ += static_cast<double>(held) * read;
  }
  void Small(uint64_t elements, uint64_t elements_held, uint64_t element_bytes = 2) {
    model_ += elements * element_bytes;
    held_["norms, convolution, small"] += elements_held * element_bytes;
    read_ += static_cast<double>(elements_held * element_bytes);
  }
  void Layer(const LayerConfig& layer, const std::string& path, uint64_t hidden);

  const absl::Status& status() const { return status_; }
  uint64_t model() const { return model_; }
  const std::map<std::string, uint64_t>& held() const { return held_; }
  uint64_t read() const { return static_cast<uint64_t>(read_); }

 private:
  const QuantizationConfig& quantization_;
  const uint64_t workers_;
  const uint32_t batch_;
  absl::Status status_;
  uint64_t model_ = 0;
  std::map<std::string, uint64_t> held_;
  double read_ = 0;
};

void WeightSum::Layer(const LayerConfig& layer, const std::string& path, uint64_t hidden) {
  const auto linear = ModuleClass::kLinear;
  const uint64_t t = workers_;
  Small(hidden, hidden);
  if (layer.kind == LayerKind::kMamba) {
    const MambaConfig& m = layer.mamba;
    // Every segment of in_proj and of the convolution is cut by heads or groups.
    Matrix("mamba projections", path + "in_proj", linear, m.in_proj_rows(), hidden,
           m.in_proj_rows() / t, hidden);
    Matrix("mamba projections", path + "out_proj", linear, hidden, m.inner(), hidden,
           m.inner() / t);
    const uint64_t small = m.conv_channels() * (m.conv_kernel + 1ull) + 3ull * m.heads + m.inner();
    Small(small, small / t);
  } else if (layer.kind == LayerKind::kAttention) {
    const AttentionConfig& a = layer.attention;
    const uint64_t q = uint64_t{a.heads} * a.head_dim;
    const uint64_t kv = uint64_t{a.kv_heads} * a.head_dim;
    const uint64_t kv_held = Ceil(a.kv_heads, t) * a.head_dim;
    Matrix("attention", path + "q_proj", linear, q, hidden, q / t, hidden);
    Matrix("attention", path + "k_proj", linear, kv, hidden, kv_held, hidden);
    Matrix("attention", path + "v_proj", linear, kv, hidden, kv_held, hidden);
    Matrix("attention", path + "o_proj", linear, hidden, q, hidden, q / t);
  } else if (layer.kind == LayerKind::kMlp) {
    const uint64_t width = layer.mlp.width;
    Matrix("mlp", path + "up_proj", linear, width, hidden, Ceil(width, t), hidden);
    Matrix("mlp", path + "down_proj", linear, hidden, width, hidden, Ceil(width, t));
  } else {
    const MoeConfig& m = layer.moe;
    const uint64_t latent = m.latent == 0 ? hidden : m.latent;
    const uint64_t shared_held = Ceil(m.shared_width, t);
    Matrix("router", path + "gate", ModuleClass::kRouter, m.experts, hidden, m.experts, hidden);
    Small(m.experts, m.experts, 4);
    if (m.latent != 0) {
      Matrix("latent projections", path + "fc1_latent_proj", linear, latent, hidden, latent,
             hidden);
      Matrix("latent projections", path + "fc2_latent_proj", linear, hidden, latent, hidden,
             latent);
    }
    if (m.shared_width != 0) {
      Matrix("shared experts", path + "shared_experts.up_proj", linear, m.shared_width, hidden,
             shared_held, hidden);
      Matrix("shared experts", path + "shared_experts.down_proj", linear, hidden, m.shared_width,
             hidden, shared_held);
    }
    const uint64_t held = Ceil(m.experts, t);
    // Tokens that choose evenly and independently leave an expert out with (1 - k/E)^batch.
    const double left_out = std::pow(1.0 - double{1} * m.experts_per_token / m.experts, batch_);
    Matrix("routed experts", path + "experts.0.up_proj", linear, m.expert_width, latent,
           m.expert_width, latent, m.experts, held, 1.0 - left_out);
    Matrix("routed experts", path + "experts.0.down_proj", linear, latent, m.expert_width, latent,
           m.expert_width, m.experts, held, 1.0 - left_out);
  }
}

absl::Status CheckOptions(const ModelConfig& model, const PlanOptions& options, uint64_t length) {
  const uint32_t t = options.workers;
  if (t < 1 || options.max_sequences < 1 || options.step_tokens < 1 || options.block_tokens < 1) {
    return absl::InvalidArgumentError(
        "workers, max_sequences, step_tokens and block_tokens: each must be at least 1");
  }
  if (length > model.context_tokens_max) {
    return absl::InvalidArgumentError(Concat("max_model_len: is ", length, "; the model's context ",
                                             "is ", model.context_tokens_max, " tokens"));
  }
  for (const LayerConfig& layer : model.layers) {
    const bool mamba = layer.kind == LayerKind::kMamba &&
                       (layer.mamba.heads % t != 0 || layer.mamba.groups % t != 0);
    const bool attention = layer.kind == LayerKind::kAttention && layer.attention.heads % t != 0;
    if (mamba || attention) {
      return absl::InvalidArgumentError(
          Concat("workers: is ", t, "; must divide the heads and ", "groups of every layer"));
    }
  }
  return absl::OkStatus();
}

// Activations of one step; the widest layer decides. An estimate until kernels say what they need.
uint64_t WorkspaceBytes(const ModelConfig& model, const PlanOptions& options) {
  const uint64_t t = options.workers;
  uint64_t widest = 0;
  for (const LayerConfig& layer : model.layers) {
    const MoeConfig& m = layer.moe;
    const uint64_t latent = m.latent == 0 ? model.hidden : m.latent;
    const uint64_t width =
        layer.kind == LayerKind::kMamba ? 2ull * layer.mamba.in_proj_rows() / t
        : layer.kind == LayerKind::kAttention
            ? 2ull * layer.attention.heads * layer.attention.head_dim
        : layer.kind == LayerKind::kMlp
            ? Ceil(layer.mlp.width, t)
            : m.experts_per_token * (m.expert_width + 2 * latent) + Ceil(m.shared_width, t);
    widest = std::max(widest, width);
  }
  return options.step_tokens * (4ull * model.hidden + widest) * 4 +
         uint64_t{options.max_sequences} * model.vocab * 4;
}

absl::StatusOr<MemoryPlan> PlanOnce(const ModelConfig& model,
                                    const QuantizationConfig& quantization,
                                    const PlanOptions& options) {
  const uint64_t length =
      options.max_model_len == 0 ? model.context_tokens_max : options.max_model_len;
  if (absl::Status s = CheckOptions(model, options, length); !s.ok()) return s;
  const uint64_t t = options.workers;
  MemoryPlan plan;
  WeightSum weights(quantization, options);
  const uint64_t vocab_held = Ceil(model.vocab, t);
  // A decode step reads one row a token of a table that is not the head too.
  const double rows_read = model.tie_word_embeddings
                               ? 1.0
                               : std::min<double>(options.max_sequences, model.vocab) / model.vocab;
  weights.Matrix("embeddings", "backbone.embeddings", ModuleClass::kEmbedding, model.vocab,
                 model.hidden, vocab_held, model.hidden, 1, 1, rows_read);
  if (!model.tie_word_embeddings) {
    weights.Matrix("lm_head", "lm_head", ModuleClass::kLinear, model.vocab, model.hidden,
                   vocab_held, model.hidden);
  }
  weights.Small(model.hidden, model.hidden);
  uint64_t ssm = 0;
  uint64_t conv = 0;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerConfig& layer = model.layers[i];
    weights.Layer(layer, Concat("backbone.layers.", i, ".mixer."), model.hidden);
    ssm += uint64_t{layer.mamba.inner()} * layer.mamba.state / t * TypeBytes(options.ssm_type);
    if (layer.kind == LayerKind::kMamba) {
      conv += layer.mamba.conv_channels() / t * (layer.mamba.conv_kernel - 1ull) * 2;
    } else if (layer.kind == LayerKind::kAttention) {
      const uint64_t scale = options.kv_type == StateType::kInt8 ? 4 : 0;
      plan.kv_bytes_per_token += 2 * Ceil(layer.attention.kv_heads, t) *
                                 (layer.attention.head_dim * TypeBytes(options.kv_type) + scale);
    }
  }
  if (!weights.status().ok()) return weights.status();
  for (const auto& [name, bytes] : weights.held()) {
    plan.parts.push_back({"weights: " + name, bytes, false});
    plan.weight_bytes += bytes;
  }
  plan.weight_bytes_model = weights.model();
  plan.weight_bytes_decode = weights.read();
  plan.state_bytes_per_sequence = ssm + conv;
  plan.parts.push_back({"SSM slots", ssm * options.max_sequences, false});
  plan.parts.push_back({"convolution slots", conv * options.max_sequences, false});
  plan.parts.push_back({"workspace", WorkspaceBytes(model, options), true});
  plan.parts.push_back({"graphs", kGraphBytes * options.max_sequences, true});
  if (t > 1) plan.parts.push_back({"communicator", options.communicator_bytes, true});
  plan.parts.push_back({"device context", options.context_bytes, true});
  uint64_t fixed = 0;
  for (const PlanPart& part : plan.parts) fixed += part.bytes;

  const uint64_t block = options.block_tokens;
  plan.kv_tokens_wanted = Ceil(length, block) * block;
  const uint64_t kv_bytes = plan.kv_tokens_wanted * plan.kv_bytes_per_token;
  plan.parts.push_back({"KV pool", kv_bytes, false});
  plan.total_bytes = fixed + kv_bytes;
  plan.fits = plan.total_bytes <= options.memory_bytes;
  (plan.fits ? plan.margin_bytes : plan.missing_bytes) =
      plan.fits ? options.memory_bytes - plan.total_bytes : plan.total_bytes - options.memory_bytes;
  if (plan.kv_bytes_per_token > 0 && fixed < options.memory_bytes) {
    plan.kv_tokens_fit = (options.memory_bytes - fixed) / plan.kv_bytes_per_token / block * block;
  }
  return plan;
}

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(const ModelConfig& model,
                                      const QuantizationConfig& quantization,
                                      const PlanOptions& options) {
  auto plan = PlanOnce(model, quantization, options);
  if (!plan.ok()) return plan;
  // Each knob alone, turned one notch: what it frees is the difference of two plans.
  const auto try_knob = [&](const std::string& change, const PlanOptions& changed) {
    auto other = PlanOnce(model, quantization, changed);
    if (other.ok() && other->total_bytes < plan->total_bytes) {
      plan->knobs.push_back({change, plan->total_bytes - other->total_bytes});
    }
  };
  PlanOptions changed = options;
  changed.workers = options.workers * 2;
  try_knob(Concat("--workers ", changed.workers), changed);
  changed = options;
  changed.kv_type = StateType::kInt8;
  try_knob("--kv-dtype int8", changed);
  changed = options;
  changed.ssm_type = StateType::kF16;
  try_knob("--ssm-dtype float16", changed);
  changed = options;
  changed.max_model_len = std::max(
      1u, (options.max_model_len == 0 ? model.context_tokens_max : options.max_model_len) / 2);
  try_knob(Concat("--max-model-len ", changed.max_model_len), changed);
  changed = options;
  changed.max_sequences = std::max(1u, options.max_sequences / 2);
  try_knob(Concat("--max-sequences ", changed.max_sequences), changed);
  changed = options;
  changed.step_tokens = std::max(1u, options.step_tokens / 2);
  try_knob(Concat("--step-tokens ", changed.step_tokens), changed);
  std::stable_sort(plan->knobs.begin(), plan->knobs.end(),
                   [](const auto& a, const auto& b) { return a.bytes_freed > b.bytes_freed; });
  return plan;
}

absl::StatusOr<uint64_t> ParseBytes(const std::string& text) {
  static const std::pair<const char*, double> kUnits[] = {{"", 1},
                                                          {"B", 1},
                                                          {"kB", 1e3},
                                                          {"MB", 1e6},
                                                          {"GB", 1e9},
                                                          {"KiB", 1024.0},
                                                          {"MiB", 1048576.0},
                                                          {"GiB", 1073741824.0},
                                                          {"TiB", 1.099511627776e12}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end != text.c_str() && std::isfinite(number) && number > 0) {
    for (const auto& [unit, factor] : kUnits) {
      if (std::string(end) == unit && number * factor < 1e18) {
        return static_cast<uint64_t>(number * factor);
      }
    }
  }
  return absl::InvalidArgumentError(
      Concat("is \"", text, "\"; give a number with a unit, as 24GiB or 512MiB"));
}

}  // namespace tessera::engine

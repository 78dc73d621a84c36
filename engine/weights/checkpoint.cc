#include "engine/weights/checkpoint.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <utility>

#include "engine/core/check.h"
#include "engine/weights/concat.h"
#include "engine/weights/matrix_reader.h"
#include "engine/weights/quantization_config.h"
#include "engine/weights/tensor_table.h"

namespace tessera::engine {
namespace {

constexpr size_t kMatrixRoles = 13;
constexpr size_t kVectorRoles = 8;
constexpr size_t kNamesInWarningMax = 8;

// Tensors that other engines use and this one leaves alone without a word: scales of quantised
// activations and of quantised KV caches.
bool IsKnownExtra(std::string_view name) {
  for (std::string_view suffix : {".input_scale", ".input_global_scale", ".k_scale", ".v_scale"}) {
    if (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix) {
      return true;
    }
  }
  return false;
}

bool IsMtp(std::string_view name) { return name.substr(0, 4) == "mtp."; }

// What was found for one layer.
struct LayerTensors {
  std::array<std::optional<WeightMatrix>, kMatrixRoles> matrices;
  std::array<const StoredTensor*, kVectorRoles> vectors = {};
  std::vector<WeightMatrix> expert_up;
  std::vector<WeightMatrix> expert_down;
};

// Reads the tensors of one layer. The first error sticks.
class LayerReader {
 public:
  LayerReader(MatrixReader& reader, const TensorTable& table, std::string path, uint32_t hidden,
              LayerTensors& out)
      : reader_(reader), table_(table), path_(std::move(path)), hidden_(hidden), out_(out) {}

  absl::Status Read(const LayerConfig& layer) {
    Vector(VectorRole::kNorm, "norm.weight", {{hidden_}});
    switch (layer.kind) {
      case LayerKind::kMamba:
        ReadMamba(layer.mamba);
        break;
      case LayerKind::kAttention:
        ReadAttention(layer.attention);
        break;
      case LayerKind::kMoe:
        ReadMoe(layer.moe);
        break;
      case LayerKind::kMlp:
        Matrix(MatrixRole::kUpProj, "mixer.up_proj", layer.mlp.width, hidden_);
        Matrix(MatrixRole::kDownProj, "mixer.down_proj", hidden_, layer.mlp.width);
        break;
    }
    return status_;
  }

 private:
  void ReadMamba(const MambaConfig& m) {
    const uint64_t channels = m.conv_channels();
    Matrix(MatrixRole::kInProj, "mixer.in_proj", m.in_proj_rows(), hidden_);
    Matrix(MatrixRole::kOutProj, "mixer.out_proj", hidden_, m.inner());
    Vector(VectorRole::kConvWeight, "mixer.conv1d.weight",
           {{channels, 1, m.conv_kernel}, {channels, m.conv_kernel}});
    if (m.conv_bias) Vector(VectorRole::kConvBias, "mixer.conv1d.bias", {{channels}});
    Vector(VectorRole::kALog, "mixer.A_log", {{m.heads}});
    Vector(VectorRole::kD, "mixer.D", {{m.heads}});
    Vector(VectorRole::kDtBias, "mixer.dt_bias", {{m.heads}});
    Vector(VectorRole::kMixerNorm, "mixer.norm.weight", {{m.inner()}});
  }

  void ReadAttention(const AttentionConfig& a) {
    Matrix(MatrixRole::kQProj, "mixer.q_proj", a.heads * a.head_dim, hidden_);
    Matrix(MatrixRole::kKProj, "mixer.k_proj", a.kv_heads * a.head_dim, hidden_);
    Matrix(MatrixRole::kVProj, "mixer.v_proj", a.kv_heads * a.head_dim, hidden_);
    Matrix(MatrixRole::kOProj, "mixer.o_proj", hidden_, a.heads * a.head_dim);
  }

  void ReadMoe(const MoeConfig& m) {
    const uint32_t latent = m.latent == 0 ? hidden_ : m.latent;
    Matrix(MatrixRole::kRouter, "mixer.gate", m.experts, hidden_, ModuleClass::kRouter);
    Vector(VectorRole::kRouterBias, "mixer.gate.e_score_correction_bias", {{m.experts}});
    if (m.latent != 0) {
      Matrix(MatrixRole::kLatentDown, "mixer.fc1_latent_proj", m.latent, hidden_);
      Matrix(MatrixRole::kLatentUp, "mixer.fc2_latent_proj", hidden_, m.latent);
    }
    if (m.shared_width != 0) {
      Matrix(MatrixRole::kSharedUp, "mixer.shared_experts.up_proj", m.shared_width, hidden_);
      Matrix(MatrixRole::kSharedDown, "mixer.shared_experts.down_proj", hidden_, m.shared_width);
    }
    Experts("up_proj", m.experts, m.expert_width, latent, out_.expert_up);
    Experts("down_proj", m.experts, latent, m.expert_width, out_.expert_down);
  }

  void Experts(std::string_view name, uint32_t experts, uint32_t rows, uint32_t cols,
               std::vector<WeightMatrix>& out) {
    if (!status_.ok()) return;
    const std::string fused = Concat(path_, "mixer.experts.", name);
    for (const std::string& spelling : {fused, fused + ".weight"}) {
      if (table_.Find(spelling) == nullptr) continue;
      auto views = reader_.FusedExperts(spelling, experts, rows, cols);
      status_ = views.status();
      if (views.ok()) out = *std::move(views);
      return;
    }
    for (uint32_t e = 0; e < experts; ++e) {
      const std::string path = Concat(path_, "mixer.experts.", e, ".", name);
      auto matrix = reader_.Matrix(path, rows, cols, ModuleClass::kLinear);
      if (!matrix.ok()) {
        status_ = matrix.status();
        return;
      }
      out.push_back(*matrix);
    }
  }

  void Matrix(MatrixRole role, std::string_view name, uint32_t rows, uint32_t cols,
              ModuleClass kind = ModuleClass::kLinear) {
    if (!status_.ok()) return;
    auto matrix = reader_.Matrix(Concat(path_, name), rows, cols, kind);
    status_ = matrix.status();
    if (matrix.ok()) out_.matrices[static_cast<size_t>(role)] = *matrix;
  }

  void Vector(VectorRole role, std::string_view name, std::vector<std::vector<uint64_t>> shapes) {
    if (!status_.ok()) return;
    auto tensor = reader_.Floats(Concat(path_, name), std::move(shapes));
    status_ = tensor.status();
    if (tensor.ok()) out_.vectors[static_cast<size_t>(role)] = *tensor;
  }

  MatrixReader& reader_;
  const TensorTable& table_;
  const std::string path_;
  const uint32_t hidden_;
  LayerTensors& out_;
  absl::Status status_;
};

// The module that holds the vocabulary embedding.
absl::StatusOr<std::string> FindEmbeddings(const TensorTable& table) {
  for (std::string_view prefix : {"backbone.", "model."}) {
    for (std::string_view name : {"embeddings", "embed_tokens"}) {
      for (std::string_view suffix : {".weight", ".weight_packed"}) {
        if (table.Find(Concat(prefix, name, suffix)) != nullptr) return Concat(prefix, name);
      }
    }
  }
  return absl::InvalidArgumentError(
      "tensor \"backbone.embeddings.weight\" is missing, and so are its other spellings (model., "
      "embed_tokens)");
}

}  // namespace

struct Checkpoint::State {
  ModelConfig config;
  std::unique_ptr<QuantizationConfig> quantization;
  std::optional<TensorTable> table;
  std::deque<std::vector<std::byte>> copies;
  WeightMatrix embeddings;
  WeightMatrix lm_head;
  const StoredTensor* final_norm = nullptr;
  std::vector<LayerTensors> layers;
  bool has_mtp = false;
  std::vector<std::string> unused;

  absl::Status Bind();
  const LayerTensors& Layer(uint32_t layer) const {
    TESSERA_CHECK(layer < layers.size(), Concat(layer, " of ", layers.size()));
    return layers[layer];
  }
};

absl::Status Checkpoint::State::Bind() {
  MatrixReader reader(*table, *quantization);
  auto embedding_path = FindEmbeddings(*table);
  if (!embedding_path.ok()) return embedding_path.status();
  const std::string prefix = embedding_path->substr(0, embedding_path->find('.') + 1);
  auto embedding =
      reader.Matrix(*embedding_path, config.vocab, config.hidden, ModuleClass::kEmbedding);
  if (!embedding.ok()) return embedding.status();
  embeddings = *embedding;
  if (config.tie_word_embeddings) {
    lm_head = embeddings;
    table->Use("lm_head.weight");  // some writers store the tied copy
  } else {
    auto head = reader.Matrix("lm_head", config.vocab, config.hidden, ModuleClass::kLinear);
    if (!head.ok()) return head.status();
    lm_head = *head;
  }
  auto norm = reader.Floats(prefix + "norm_f.weight", {{config.hidden}});
  if (!norm.ok()) return norm.status();
  final_norm = *norm;
  layers.reserve(config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerReader layer(reader, *table, Concat(prefix, "layers.", i, "."), config.hidden,
                      layers.emplace_back());
    if (absl::Status s = layer.Read(config.layers[i]); !s.ok()) return s;
  }
  copies = reader.TakeCopies();
  for (const StoredTensor* tensor : table->Unused()) {
    if (IsMtp(tensor->name)) {
      has_mtp = true;
    } else if (!IsKnownExtra(tensor->name)) {
      unused.push_back(tensor->name);
    }
  }
  return absl::OkStatus();
}

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::~Checkpoint() = default;

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& model_dir) {
  auto state = std::make_unique<State>();
  auto config = LoadModelConfig(model_dir);
  if (!config.ok()) return config.status();
  state->config = *std::move(config);
  auto quantization = QuantizationConfig::Load(model_dir);
  if (!quantization.ok()) return quantization.status();
  state->quantization = *std::move(quantization);
  auto table = TensorTable::Open(model_dir);
  if (!table.ok()) return table.status();
  state->table.emplace(*std::move(table));
  if (absl::Status s = state->Bind(); !s.ok()) {
    return absl::Status(s.code(), Concat(model_dir, ": ", std::string(s.message())));
  }
  return std::unique_ptr<Checkpoint>(new Checkpoint(std::move(state)));
}

const ModelConfig& Checkpoint::config() const { return state_->config; }
WeightMatrix Checkpoint::Embeddings() const { return state_->embeddings; }
WeightMatrix Checkpoint::LmHead() const { return state_->lm_head; }
std::vector<float> Checkpoint::FinalNorm() const { return ToFloats(*state_->final_norm); }

WeightMatrix Checkpoint::Matrix(uint32_t layer, MatrixRole role) const {
  const auto& matrix = state_->Layer(layer).matrices[static_cast<size_t>(role)];
  TESSERA_CHECK(matrix.has_value(), Concat("layer ", layer, " role ", static_cast<int>(role)));
  return *matrix;
}

WeightMatrix Checkpoint::ExpertMatrix(uint32_t layer, uint32_t expert, ExpertRole role) const {
  const LayerTensors& tensors = state_->Layer(layer);
  const auto& experts = role == ExpertRole::kUp ? tensors.expert_up : tensors.expert_down;
  TESSERA_CHECK(expert < experts.size(), Concat("layer ", layer, " expert ", expert));
  return experts[expert];
}

std::vector<float> Checkpoint::Vector(uint32_t layer, VectorRole role) const {
  const StoredTensor* tensor = state_->Layer(layer).vectors[static_cast<size_t>(role)];
  const LayerConfig& config = state_->config.layers[layer];
  if (tensor == nullptr && role == VectorRole::kConvBias && config.kind == LayerKind::kMamba) {
    return std::vector<float>(config.mamba.conv_channels(), 0.0f);
  }
  TESSERA_CHECK(tensor != nullptr, Concat("layer ", layer, " role ", static_cast<int>(role)));
  return ToFloats(*tensor);
}

uint64_t Checkpoint::weight_bytes() const { return state_->table->bytes_used(); }
uint64_t Checkpoint::tensor_count() const { return state_->table->size(); }
bool Checkpoint::has_mtp() const { return state_->has_mtp; }
const std::vector<std::string>& Checkpoint::unused_tensors() const { return state_->unused; }

std::vector<std::string> Checkpoint::Warnings() const {
  std::vector<std::string> warnings;
  const std::vector<std::string>& unused = state_->unused;
  if (!unused.empty()) {
    const size_t shown = std::min(unused.size(), kNamesInWarningMax);
    const std::vector<std::string> first(unused.begin(), unused.begin() + shown);
    warnings.push_back(Concat(unused.size(), " tensors of the checkpoint are not used: ",
                              Join(first, ", "), shown < unused.size() ? ", ..." : ""));
  }
  const uint32_t declared = state_->config.mtp_layers_declared;
  if (declared > 0 && !state_->has_mtp) {
    warnings.push_back(Concat("config.json declares a draft head (num_nextn_predict_layers ",
                              declared, ") but the checkpoint holds no mtp.* tensors; running ",
                              "without speculation"));
  }
  if (state_->has_mtp) {
    warnings.push_back("the checkpoint's draft head (mtp.*) is not used yet");
  }
  return warnings;
}

}  // namespace tessera::engine

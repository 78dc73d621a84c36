// Nemotron-H on the CPU: embedding, then per layer residual += mixer(norm(residual)), final norm,
// head.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/device/cpu/arena.h"
#include "engine/device/cpu/thread_pool.h"
#include "engine/kernels/vector/vector.h"
#include "engine/layers/attention_layer.h"
#include "engine/layers/layer.h"
#include "engine/layers/mamba_layer.h"
#include "engine/layers/mlp_layer.h"
#include "engine/layers/moe_layer.h"
#include "engine/layers/packing.h"
#include "engine/models/model.h"
#include "engine/weights/checkpoint.h"

namespace tessera::engine {
namespace {

// Bounds of what may be asked for, so that sizes cannot overflow.
constexpr uint32_t kSlotsMax = 1 << 16;
constexpr uint32_t kBlocksMax = 1 << 24;
constexpr uint32_t kBlockTokensMax = 1 << 12;
constexpr uint32_t kStepTokensMax = 1 << 16;

class CpuModel final : public Model {
 public:
  CpuModel(const Checkpoint& checkpoint, const ModelLimits& limits)
      : limits_(limits), pool_(limits.threads), level_(DetectCpuLevel()) {
    const ModelConfig& config = checkpoint.config();
    eps_ = config.norm_eps;
    shape_.architecture = config.architecture;
    shape_.vocab = config.vocab;
    shape_.hidden = config.hidden;
    shape_.layers = static_cast<uint32_t>(config.layers.size());
    shape_.context_tokens_max = config.context_tokens_max;
    shape_.weight_bytes = checkpoint.weight_bytes();
    for (const LayerConfig& layer : config.layers) {
      if (layer.kind == LayerKind::kAttention) {
        shape_.kv_bytes_per_token += AttentionLayer::KvBytesPerToken(layer.attention);
      }
      if (layer.kind == LayerKind::kMamba) {
        shape_.state_bytes_per_slot += MambaLayer::StateBytes(layer.mamba);
      }
    }
  }

  // Lays everything out in `arena`; with a counting arena only its size has meaning.
  void Build(const Checkpoint& checkpoint, Arena& arena, const LoadProgress& progress) {
    const ModelConfig& config = checkpoint.config();
    const LayerLimits limits = {.rows = limits_.step_tokens_max,
                                .slots = limits_.slots,
                                .blocks = limits_.blocks,
                                .block_tokens = limits_.block_tokens,
                                .threads = pool_.threads()};
    layers_.clear();
    norms_.clear();
    embeddings_ = Pack(checkpoint.Embeddings(), arena);
    lm_head_ = config.tie_word_embeddings ? embeddings_ : Pack(checkpoint.LmHead(), arena);
    final_norm_ = PackVector(checkpoint.FinalNorm(), arena);
    uint32_t cols_max = std::max(embeddings_.cols, lm_head_.cols);
    for (uint32_t i = 0; i < config.layers.size(); ++i) {
      norms_.push_back(PackVector(checkpoint.Vector(i, VectorRole::kNorm), arena));
      layers_.push_back(MakeLayer(checkpoint, i, limits, arena));
      cols_max = std::max(cols_max, ColsMax(config.layers[i], config.hidden));
      if (progress != nullptr && !arena.counting()) {
        progress("read", shape_.weight_bytes * (i + 1) / config.layers.size(), shape_.weight_bytes);
      }
    }
    const size_t rows = limits_.step_tokens_max;
    residual_ = arena.Take<float>(rows * config.hidden);
    normed_ = arena.Take<float>(rows * config.hidden);
    logit_rows_ = arena.Take<float>(size_t{limits_.logit_rows_max} * config.hidden);
    scratch_.clear();
    for (int t = 0; t < pool_.threads(); ++t) {
      scratch_.push_back(arena.Take<float>(MatMulScratchFloats(cols_max)));
    }
    chunks_.reserve(limits_.slots);
    slot_seen_.assign(limits_.slots, false);
  }

  void Keep(Arena arena) { arena_ = std::move(arena); }
  const ModelShape& shape() const override { return shape_; }
  const ModelLimits& limits() const override { return limits_; }

  absl::Status Forward(std::span<const SequenceChunk> chunks, std::span<float> logits) override {
    if (absl::Status checked = Check(chunks, logits); !checked.ok()) return checked;
    if (chunks.empty()) return absl::OkStatus();
    const StepContext step = Begin(chunks);
    for (size_t i = 0; i < layers_.size(); ++i) {
      NormRows(step, norms_[i]);
      layers_[i]->Forward(step, normed_, residual_);
    }
    WriteLogits(step, chunks, logits);
    return absl::OkStatus();
  }

 private:
  static uint32_t ColsMax(const LayerConfig& layer, uint32_t hidden) {
    switch (layer.kind) {
      case LayerKind::kMamba:
        return std::max(hidden, layer.mamba.inner());
      case LayerKind::kAttention:
        return std::max(hidden, layer.attention.heads * layer.attention.head_dim);
      case LayerKind::kMlp:
        return std::max(hidden, layer.mlp.width);
      case LayerKind::kMoe:
        return std::max({hidden, layer.moe.latent, layer.moe.expert_width, layer.moe.shared_width});
    }
    return hidden;
  }

  std::unique_ptr<Layer> MakeLayer(const Checkpoint& checkpoint, uint32_t i,
                                   const LayerLimits& limits, Arena& arena) const {
    switch (checkpoint.config().layers[i].kind) {
      case LayerKind::kMamba:
        return std::make_unique<MambaLayer>(checkpoint, i, limits, eps_, arena);
      case LayerKind::kAttention:
        return std::make_unique<AttentionLayer>(checkpoint, i, limits, arena);
      case LayerKind::kMoe:
        return std::make_unique<MoeLayer>(checkpoint, i, limits, arena);
      case LayerKind::kMlp:
        return std::make_unique<MlpLayer>(checkpoint, i, limits, arena);
    }
    return nullptr;
  }

  absl::Status CheckChunk(const SequenceChunk& chunk, const std::string& name) {
    if (chunk.slot.value >= limits_.slots) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ".slot: is ", chunk.slot.value, "; the model has ", limits_.slots));
    }
    if (slot_seen_[chunk.slot.value]) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ".slot: ", chunk.slot.value, " is used twice in one step"));
    }
    slot_seen_[chunk.slot.value] = true;
    if (chunk.tokens.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ".tokens: is empty"));
    }
    const uint64_t end = uint64_t{chunk.position} + chunk.tokens.size();
    if (end > chunk.block_table.size() * uint64_t{limits_.block_tokens}) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ".block_table: holds ", chunk.block_table.size(), " blocks of ",
                       limits_.block_tokens, " tokens; ", end, " tokens need more"));
    }
    for (BlockId block : chunk.block_table) {
      if (block.value >= limits_.blocks) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, ".block_table: block ", block.value, " of ", limits_.blocks));
      }
    }
    for (size_t i = 0; i < chunk.tokens.size(); ++i) {
      if (chunk.tokens[i].value >= shape_.vocab) {
        return absl::InvalidArgumentError(absl::StrCat(name, ".tokens[", i, "]: is ",
                                                       chunk.tokens[i].value,
                                                       "; the vocabulary has ", shape_.vocab));
      }
    }
    for (size_t i = 0; i < chunk.logit_offsets.size(); ++i) {
      if (chunk.logit_offsets[i] >= chunk.tokens.size() ||
          (i > 0 && chunk.logit_offsets[i] <= chunk.logit_offsets[i - 1])) {
        return absl::InvalidArgumentError(absl::StrCat(
            name, ".logit_offsets[", i, "]: must ascend and stay below ", chunk.tokens.size()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Check(std::span<const SequenceChunk> chunks, std::span<float> logits) {
    std::fill(slot_seen_.begin(), slot_seen_.end(), false);
    uint64_t tokens = 0, rows = 0;
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (absl::Status checked = CheckChunk(chunks[i], absl::StrCat("chunks[", i, "]"));
          !checked.ok()) {
        return checked;
      }
      tokens += chunks[i].tokens.size();
      rows += chunks[i].logit_offsets.size();
    }
    if (tokens > limits_.step_tokens_max) {
      return absl::InvalidArgumentError(absl::StrCat(
          "chunks: hold ", tokens, " tokens; one step takes ", limits_.step_tokens_max));
    }
    if (rows > limits_.logit_rows_max || logits.size() != rows * shape_.vocab) {
      return absl::InvalidArgumentError(absl::StrCat("logits: has ", logits.size(), " values for ",
                                                     rows, " rows of ", shape_.vocab, "; at most ",
                                                     limits_.logit_rows_max, " rows"));
    }
    return absl::OkStatus();
  }

  StepContext Begin(std::span<const SequenceChunk> chunks) {
    chunks_.clear();
    uint32_t rows = 0;
    for (const SequenceChunk& chunk : chunks) {
      if (chunk.zero_slot) {
        for (const std::unique_ptr<Layer>& layer : layers_) layer->ZeroSlot(chunk.slot.value);
      }
      // A BlockId is a uint32_t with a name; the layers read the table as it is.
      static_assert(sizeof(BlockId) == sizeof(uint32_t));
      chunks_.push_back(
          {.row_begin = rows,
           .tokens = static_cast<uint32_t>(chunk.tokens.size()),
           .position = chunk.position,
           .slot = chunk.slot.value,
           .block_table = {reinterpret_cast<const uint32_t*>(chunk.block_table.data()),
                           chunk.block_table.size()}});
      for (TokenId token : chunk.tokens) {
        UnpackRow(embeddings_, token.value, residual_ + size_t{rows++} * shape_.hidden);
      }
    }
    return {.pool = &pool_,
            .level = level_,
            .chunks = chunks_,
            .rows = rows,
            .scratch = scratch_.data()};
  }

  void NormRows(const StepContext& step, const float* weight) {
    const auto norm = [&](uint32_t begin, uint32_t end) {
      for (uint32_t r = begin; r < end; ++r) {
        const size_t at = size_t{r} * shape_.hidden;
        RmsNorm(level_, residual_ + at, weight, eps_, shape_.hidden, normed_ + at);
      }
    };
    // For a few rows a barrier costs more than the work.
    constexpr uint32_t kRowsAlone = 8;
    if (step.rows <= kRowsAlone) return norm(0, step.rows);
    pool_.Run([&](int thread) {
      const ThreadPool::Range part = pool_.Part(step.rows, 1, thread);
      norm(part.begin, part.end);
    });
  }

  void WriteLogits(const StepContext& step, std::span<const SequenceChunk> chunks,
                   std::span<float> logits) {
    uint32_t rows = 0;
    for (size_t i = 0; i < chunks.size(); ++i) {
      for (uint32_t offset : chunks[i].logit_offsets) {
        RmsNorm(level_, residual_ + size_t{chunks_[i].row_begin + offset} * shape_.hidden,
                final_norm_, eps_, shape_.hidden, logit_rows_ + size_t{rows++} * shape_.hidden);
      }
    }
    if (rows == 0) return;
    pool_.Run([&](int thread) {
      MatMulPart(step, thread, lm_head_, logit_rows_, shape_.hidden, rows, logits.data(),
                 shape_.vocab);
    });
  }

  const ModelLimits limits_;
  ModelShape shape_;
  Arena arena_;
  ThreadPool pool_;
  const CpuLevel level_;
  float eps_ = 0;
  PackedMatrix embeddings_, lm_head_;
  const float* final_norm_ = nullptr;
  std::vector<const float*> norms_;
  std::vector<std::unique_ptr<Layer>> layers_;
  float* residual_ = nullptr;    // [step_tokens_max, hidden]
  float* normed_ = nullptr;      // likewise
  float* logit_rows_ = nullptr;  // [logit_rows_max, hidden]
  std::vector<float*> scratch_;
  std::vector<StepChunk> chunks_;
  std::vector<bool> slot_seen_;
};

absl::Status CheckLimits(const ModelLimits& limits) {
  const auto outside = [](uint32_t value, uint32_t most) { return value < 1 || value > most; };
  if (outside(limits.slots, kSlotsMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("slots: is ", limits.slots, "; give 1 to ", kSlotsMax));
  }
  if (outside(limits.blocks, kBlocksMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("blocks: is ", limits.blocks, "; give 1 to ", kBlocksMax));
  }
  if (outside(limits.block_tokens, kBlockTokensMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("block_tokens: is ", limits.block_tokens, "; give 1 to ", kBlockTokensMax));
  }
  if (outside(limits.step_tokens_max, kStepTokensMax) ||
      outside(limits.logit_rows_max, kStepTokensMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("step_tokens_max, logit_rows_max: are ", limits.step_tokens_max, " and ",
                     limits.logit_rows_max, "; give 1 to ", kStepTokensMax));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadCpuModel(const std::string& model_path,
                                                    const ModelLimits& limits,
                                                    const LoadProgress& progress,
                                                    std::vector<std::string>* warnings) {
  if (absl::Status checked = CheckLimits(limits); !checked.ok()) return checked;
  absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open(model_path);
  if (!checkpoint.ok()) return checkpoint.status();
  if (warnings != nullptr) *warnings = (*checkpoint)->Warnings();

  auto model = std::make_unique<CpuModel>(**checkpoint, limits);
  Arena counting;
  model->Build(**checkpoint, counting, nullptr);
  Arena arena(counting.used());
  if (!arena.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the model needs ", counting.used() >> 20,
                     " MiB in one piece, which the system has not got; lower --kv-blocks or "
                     "--max-sequences"));
  }
  model->Build(**checkpoint, arena, progress);
  model->Keep(std::move(arena));
  return model;
}

}  // namespace tessera::engine

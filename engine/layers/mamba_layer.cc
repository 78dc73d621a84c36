#include "engine/layers/mamba_layer.h"

#include <algorithm>
#include <cmath>

#include "engine/kernels/ssm/ssm.h"
#include "engine/kernels/vector/vector.h"
#include "engine/layers/packing.h"

namespace tessera::engine {
namespace {

// Above this log(1 + exp(v)) is v in float32.
constexpr float kSoftplusLinear = 20.0f;

float Softplus(float v) { return v > kSoftplusLinear ? v : std::log1p(std::exp(v)); }

// [channels, width] to [width, channels], so that the convolution runs over neighbours.
std::vector<float> Transposed(const std::vector<float>& weight, uint32_t channels, uint32_t width) {
  std::vector<float> out(weight.size());
  for (uint32_t ch = 0; ch < channels; ++ch) {
    for (uint32_t j = 0; j < width; ++j) out[j * channels + ch] = weight[ch * width + j];
  }
  return out;
}

}  // namespace

uint64_t MambaLayer::StateBytes(const MambaConfig& config) {
  return sizeof(float) * (uint64_t{config.inner()} * config.state +
                          uint64_t{config.conv_kernel - 1} * config.conv_channels());
}

MambaLayer::MambaLayer(const Checkpoint& checkpoint, uint32_t layer, const LayerLimits& limits,
                       float eps, Arena& arena)
    : config_(checkpoint.config().layers[layer].mamba), eps_(eps) {
  in_proj_ = Pack(checkpoint.Matrix(layer, MatrixRole::kInProj), arena);
  out_proj_ = Pack(checkpoint.Matrix(layer, MatrixRole::kOutProj), arena);
  conv_weight_ = PackVector(Transposed(checkpoint.Vector(layer, VectorRole::kConvWeight),
                                       config_.conv_channels(), config_.conv_kernel),
                            arena);
  conv_bias_ = PackVector(checkpoint.Vector(layer, VectorRole::kConvBias), arena);
  std::vector<float> a = checkpoint.Vector(layer, VectorRole::kALog);
  for (float& value : a) value = -std::exp(value);
  a_ = PackVector(a, arena);
  d_ = PackVector(checkpoint.Vector(layer, VectorRole::kD), arena);
  dt_bias_ = PackVector(checkpoint.Vector(layer, VectorRole::kDtBias), arena);
  norm_ = PackVector(checkpoint.Vector(layer, VectorRole::kMixerNorm), arena);
  ssm_state_ = arena.Take<float>(size_t{limits.slots} * config_.inner() * config_.state);
  conv_state_ =
      arena.Take<float>(size_t{limits.slots} * (config_.conv_kernel - 1) * config_.conv_channels());
  projected_ = arena.Take<float>(size_t{limits.rows} * config_.in_proj_rows());
  convolved_ = arena.Take<float>(size_t{limits.rows} * config_.conv_channels());
  scanned_ = arena.Take<float>(size_t{limits.rows} * config_.inner());
  dt_stride_ = limits.rows;
  dt_ = arena.Take<float>(size_t{config_.heads} * dt_stride_);
}

void MambaLayer::ZeroSlot(uint32_t slot) {
  const size_t ssm = size_t{config_.inner()} * config_.state;
  const size_t conv = size_t{config_.conv_kernel - 1} * config_.conv_channels();
  std::fill_n(ssm_state_ + slot * ssm, ssm, 0.0f);
  std::fill_n(conv_state_ + slot * conv, conv, 0.0f);
}

void MambaLayer::Convolve(const StepContext& step, int thread) {
  const size_t channels = config_.conv_channels();
  const ThreadPool::Range part = step.pool->Part(config_.conv_channels(), 8, thread);
  if (part.begin == part.end) return;
  for (const StepChunk& chunk : step.chunks) {
    CausalConvSilu(
        step.level,
        {.x = projected_ + size_t{chunk.row_begin} * in_proj_.rows + config_.inner() + part.begin,
         .x_stride = in_proj_.rows,
         .y = convolved_ + size_t{chunk.row_begin} * channels + part.begin,
         .y_stride = channels,
         .weight = conv_weight_ + part.begin,
         .bias = conv_bias_ + part.begin,
         .state = conv_state_ + chunk.slot * (config_.conv_kernel - 1) * channels + part.begin,
         .channels_total = channels,
         .channels = part.end - part.begin,
         .width = config_.conv_kernel,
         .tokens = chunk.tokens});
  }
}

void MambaLayer::Scan(const StepContext& step, int thread) {
  const uint32_t groups = config_.groups;
  const uint32_t group_heads = config_.heads / groups;
  const uint32_t group_inner = config_.inner() / groups;
  const size_t channels = config_.conv_channels();
  const size_t head_state = size_t{config_.head_dim} * config_.state;
  // An item is one group of one chunk: its heads share B and C, and its norm needs them all.
  const ThreadPool::Range part =
      step.pool->Part(static_cast<uint32_t>(step.chunks.size()) * groups, 1, thread);
  for (uint32_t item = part.begin; item < part.end; ++item) {
    const StepChunk& chunk = step.chunks[item / groups];
    const uint32_t group = item % groups;
    const float* const xbc = convolved_ + size_t{chunk.row_begin} * channels;
    const float* const projected = projected_ + size_t{chunk.row_begin} * in_proj_.rows;
    for (uint32_t head = group * group_heads; head < (group + 1) * group_heads; ++head) {
      float* const dt = dt_ + head * dt_stride_ + chunk.row_begin;
      for (uint32_t t = 0; t < chunk.tokens; ++t) {
        const float raw = projected[size_t{t} * in_proj_.rows + config_.inner() + channels + head];
        dt[t] = Softplus(raw + dt_bias_[head]);
      }
      ScanHead(step.level,
               {.x = xbc + size_t{head} * config_.head_dim,
                .b = xbc + config_.inner() + size_t{group} * config_.state,
                .c = xbc + config_.inner() + size_t{groups + group} * config_.state,
                .xbc_stride = channels,
                .dt = dt,
                .dt_stride = 1,
                .a = a_[head],
                .d = d_[head],
                .state = ssm_state_ + (size_t{chunk.slot} * config_.heads + head) * head_state,
                .y = scanned_ + size_t{chunk.row_begin} * config_.inner() +
                     size_t{head} * config_.head_dim,
                .y_stride = config_.inner(),
                .head_dim = config_.head_dim,
                .n = config_.state,
                .tokens = chunk.tokens});
    }
    for (uint32_t t = 0; t < chunk.tokens; ++t) {
      float* const y =
          scanned_ + size_t{chunk.row_begin + t} * config_.inner() + size_t{group} * group_inner;
      SiluMul(step.level, projected + size_t{t} * in_proj_.rows + size_t{group} * group_inner, y,
              group_inner);
      RmsNorm(step.level, y, norm_ + size_t{group} * group_inner, eps_, group_inner, y);
    }
  }
}

void MambaLayer::Forward(const StepContext& step, const float* x, float* residual) {
  const size_t hidden = in_proj_.cols;
  step.pool->Run([&](int thread) {
    MatMulPart(step, thread, in_proj_, x, hidden, step.rows, projected_, in_proj_.rows);
  });
  step.pool->Run([&](int thread) { Convolve(step, thread); });
  step.pool->Run([&](int thread) { Scan(step, thread); });
  step.pool->Run([&](int thread) {
    MatMulPart(step, thread, out_proj_, scanned_, config_.inner(), step.rows, residual, hidden,
               /*add=*/true);
  });
}

}  // namespace tessera::engine

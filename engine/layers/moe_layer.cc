#include "engine/layers/moe_layer.h"

#include <algorithm>
#include <cstring>

#include "engine/kernels/vector/vector.h"
#include "engine/layers/packing.h"
#include "engine/layers/routing.h"

namespace tessera::engine {

MoeLayer::MoeLayer(const Checkpoint& checkpoint, uint32_t layer, const LayerLimits& limits,
                   Arena& arena)
    : config_(checkpoint.config().layers[layer].moe),
      inner_(config_.latent != 0 ? config_.latent : checkpoint.config().hidden) {
  router_ = Pack(checkpoint.Matrix(layer, MatrixRole::kRouter), arena);
  router_bias_ = PackVector(checkpoint.Vector(layer, VectorRole::kRouterBias), arena);
  if (config_.latent != 0) {
    latent_down_ = Pack(checkpoint.Matrix(layer, MatrixRole::kLatentDown), arena);
    latent_up_ = Pack(checkpoint.Matrix(layer, MatrixRole::kLatentUp), arena);
  }
  if (config_.shared_width != 0) {
    shared_up_ = Pack(checkpoint.Matrix(layer, MatrixRole::kSharedUp), arena);
    shared_down_ = Pack(checkpoint.Matrix(layer, MatrixRole::kSharedDown), arena);
  }
  for (uint32_t e = 0; e < config_.experts; ++e) {
    up_.push_back(Pack(checkpoint.ExpertMatrix(layer, e, ExpertRole::kUp), arena));
    down_.push_back(Pack(checkpoint.ExpertMatrix(layer, e, ExpertRole::kDown), arena));
  }
  const size_t rows = limits.rows;
  const size_t pairs = rows * config_.experts_per_token;
  logits_ = arena.Take<float>(rows * config_.experts);
  latent_ = arena.Take<float>(rows * inner_);
  shared_ = arena.Take<float>(rows * config_.shared_width);
  gathered_ = arena.Take<float>(pairs * inner_);
  wide_ = arena.Take<float>(pairs * config_.expert_width);
  expert_out_ = arena.Take<float>(pairs * inner_);
  combined_ = arena.Take<float>(rows * inner_);
  route_scratch_ = arena.Take<float>(size_t{2} * config_.experts);
  chosen_ = arena.Take<uint32_t>(pairs);
  weights_ = arena.Take<float>(pairs);
  pair_of_ = arena.Take<uint32_t>(pairs);
  expert_begin_ = arena.Take<uint32_t>(size_t{config_.experts} + 1);
}

void MoeLayer::Route(const StepContext& step) {
  const uint32_t top_k = config_.experts_per_token;
  std::fill_n(expert_begin_, config_.experts + 1, 0u);
  for (uint32_t r = 0; r < step.rows; ++r) {
    RouteToken(config_, router_bias_, logits_ + size_t{r} * config_.experts, route_scratch_,
               chosen_ + size_t{r} * top_k, weights_ + size_t{r} * top_k);
    for (uint32_t k = 0; k < top_k; ++k) ++expert_begin_[chosen_[size_t{r} * top_k + k] + 1];
  }
  for (uint32_t e = 0; e < config_.experts; ++e) expert_begin_[e + 1] += expert_begin_[e];
  // Counting sort: expert_begin_ is moved up while places are given and moved back after.
  for (size_t pair = 0; pair < size_t{step.rows} * top_k; ++pair) {
    pair_of_[pair] = expert_begin_[chosen_[pair]]++;
  }
  for (uint32_t e = config_.experts; e > 0; --e) expert_begin_[e] = expert_begin_[e - 1];
  expert_begin_[0] = 0;
}

// This thread's rows of down_e(relu(up_e)^2) need all rows of up_e, hence two calls with a barrier
// between: see Forward.
void MoeLayer::RunExperts(const StepContext& step, int thread, float* out, size_t out_stride) {
  const uint32_t top_k = config_.experts_per_token;
  for (uint32_t e = 0; e < config_.experts; ++e) {
    const uint32_t begin = expert_begin_[e];
    const uint32_t count = expert_begin_[e + 1] - begin;
    if (count == 0) continue;
    MatMulPart(step, thread, down_[e], wide_ + size_t{begin} * config_.expert_width,
               config_.expert_width, count, expert_out_ + size_t{begin} * inner_, inner_);
  }
  const ThreadPool::Range part = step.pool->Part(inner_, kMatMulRowBlock, thread);
  const uint32_t width = part.end - part.begin;
  for (uint32_t r = 0; r < step.rows; ++r) {
    for (uint32_t k = 0; k < top_k; ++k) {
      const size_t pair = size_t{r} * top_k + k;
      Axpy(step.level, weights_[pair], expert_out_ + size_t{pair_of_[pair]} * inner_ + part.begin,
           out + r * out_stride + part.begin, width);
    }
  }
}

void MoeLayer::Forward(const StepContext& step, const float* x, float* residual) {
  const size_t hidden = router_.cols;
  const bool latent = config_.latent != 0;
  const bool shared = config_.shared_width != 0;
  step.pool->Run([&](int thread) {
    MatMulPart(step, thread, router_, x, hidden, step.rows, logits_, router_.rows);
    if (latent) MatMulPart(step, thread, latent_down_, x, hidden, step.rows, latent_, inner_);
    if (shared) MatMulRelu2Part(step, thread, shared_up_, x, hidden, step.rows, shared_);
  });
  Route(step);
  const float* const input = latent ? latent_ : x;
  const size_t pairs = size_t{step.rows} * config_.experts_per_token;
  for (size_t pair = 0; pair < pairs; ++pair) {
    std::memcpy(gathered_ + size_t{pair_of_[pair]} * inner_,
                input + pair / config_.experts_per_token * inner_, inner_ * sizeof(float));
  }
  step.pool->Run([&](int thread) {
    for (uint32_t e = 0; e < config_.experts; ++e) {
      const uint32_t begin = expert_begin_[e];
      const uint32_t count = expert_begin_[e + 1] - begin;
      if (count == 0) continue;
      MatMulRelu2Part(step, thread, up_[e], gathered_ + size_t{begin} * inner_, inner_, count,
                      wide_ + size_t{begin} * config_.expert_width);
    }
  });
  step.pool->Run([&](int thread) {
    if (!latent) {
      RunExperts(step, thread, residual, hidden);
    } else {
      const ThreadPool::Range part = step.pool->Part(inner_, kMatMulRowBlock, thread);
      for (uint32_t r = 0; r < step.rows; ++r) {
        std::fill(combined_ + size_t{r} * inner_ + part.begin,
                  combined_ + size_t{r} * inner_ + part.end, 0.0f);
      }
      RunExperts(step, thread, combined_, inner_);
    }
    if (shared) {
      MatMulPart(step, thread, shared_down_, shared_, shared_up_.rows, step.rows, residual, hidden,
                 /*add=*/true);
    }
  });
  if (!latent) return;
  step.pool->Run([&](int thread) {
    MatMulPart(step, thread, latent_up_, combined_, inner_, step.rows, residual, hidden,
               /*add=*/true);
  });
}

}  // namespace tessera::engine

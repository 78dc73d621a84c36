#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/kernels/ssm/ssm.h"
#include "engine/kernels/vector/vector.h"

namespace tessera::engine {

void CausalConvSilu(CpuLevel level, const ConvArgs& args) {
  const uint32_t before = args.width - 1;
  // Row of input t - before + j, from the state for inputs of earlier pieces.
  const auto input = [&](uint32_t t, uint32_t j) {
    return t + j < before ? args.state + (t + j) * args.channels_total
                          : args.x + (t + j - before) * args.x_stride;
  };
  for (uint32_t t = 0; t < args.tokens; ++t) {
    float* const y = args.y + t * args.y_stride;
    std::memcpy(y, args.bias, args.channels * sizeof(float));
    for (uint32_t j = 0; j < args.width; ++j) {
      const float* const u = input(t, j);
      const float* const weight = args.weight + j * args.channels_total;
      for (uint32_t ch = 0; ch < args.channels; ++ch) y[ch] += weight[ch] * u[ch];
    }
    Silu(level, y, args.channels);
  }
  // The last inputs, in order: each row is read before a later one overwrites it.
  for (uint32_t j = 0; j < before; ++j) {
    const float* const u = input(args.tokens, j);
    float* const kept = args.state + j * args.channels_total;
    if (u != kept) std::memmove(kept, u, args.channels * sizeof(float));
  }
}

void ScanHead(CpuLevel level, const ScanArgs& args) {
#if defined(__x86_64__)
  if (level == CpuLevel::kAvx2) return avx2::ScanHead(args);
#else
  (void)level;
#endif
  for (uint32_t t = 0; t < args.tokens; ++t) {
    const float dt = args.dt[t * args.dt_stride];
    const float decay = std::exp(args.a * dt);
    const float* const x = args.x + t * args.xbc_stride;
    const float* const b = args.b + t * args.xbc_stride;
    const float* const c = args.c + t * args.xbc_stride;
    for (uint32_t p = 0; p < args.head_dim; ++p) {
      float* const state = args.state + size_t{p} * args.n;
      const float input = dt * x[p];
      float sum = 0;
      for (uint32_t n = 0; n < args.n; ++n) {
        state[n] = decay * state[n] + input * b[n];
        sum += state[n] * c[n];
      }
      args.y[t * args.y_stride + p] = sum + args.d * x[p];
    }
  }
}

}  // namespace tessera::engine

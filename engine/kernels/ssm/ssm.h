#ifndef TESSERA_ENGINE_KERNELS_SSM_SSM_H_
#define TESSERA_ENGINE_KERNELS_SSM_SSM_H_

#include <cstddef>
#include <cstdint>

#include "engine/kernels/common/cpu_level.h"

// The two stateful parts of a Mamba-2 mixer, for consecutive tokens of one sequence. State is read
// and left behind, so any cut of a sequence into pieces gives the same numbers to the last bit.

namespace tessera::engine {

inline constexpr uint32_t kConvWidthMax = 16;

// y[t, ch] = silu(bias[ch] + sum_j weight[j, ch] * u[t - (width - 1) + j, ch]), where u[t < 0] is
// in `state`. weight[width - 1] meets the current token.
//   x: [tokens, channels], rows x_stride apart.  y: [tokens, channels], rows y_stride apart.
//   weight: [width, channels], rows `channels_total` apart, as are those of state.
//   state: [width - 1, channels], oldest first; holds the last inputs afterwards.
// All pointers are already moved to the first of `channels`. x and y must not overlap.
struct ConvArgs {
  const float* x = nullptr;
  size_t x_stride = 0;
  float* y = nullptr;
  size_t y_stride = 0;
  const float* weight = nullptr;
  const float* bias = nullptr;
  float* state = nullptr;
  size_t channels_total = 0;
  uint32_t channels = 0;
  uint32_t width = 0;  // 2 .. kConvWidthMax
  uint32_t tokens = 0;
};
void CausalConvSilu(CpuLevel level, const ConvArgs& args);

// One head of the recurrence, float32:
//   S[p, n] <- exp(a * dt[t]) * S[p, n] + dt[t] * x[t, p] * b[t, n]
//   y[t, p]  = sum_n S[p, n] * c[t, n] + d * x[t, p]
//   dt[t * dt_stride] holds softplus(dt + dt_bias) already. x, b, c and y have rows of their
//   strides.
struct ScanArgs {
  const float* x = nullptr;
  const float* b = nullptr;
  const float* c = nullptr;
  size_t xbc_stride = 0;
  const float* dt = nullptr;
  size_t dt_stride = 0;
  float a = 0;
  float d = 0;
  float* state = nullptr;  // [head_dim, n]
  float* y = nullptr;
  size_t y_stride = 0;
  uint32_t head_dim = 0;
  uint32_t n = 0;
  uint32_t tokens = 0;
};
void ScanHead(CpuLevel level, const ScanArgs& args);

namespace avx2 {
void ScanHead(const ScanArgs& args);
}

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_KERNELS_SSM_SSM_H_

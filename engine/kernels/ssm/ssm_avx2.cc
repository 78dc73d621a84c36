#include <immintrin.h>

#include <cmath>

#include "engine/kernels/ssm/ssm.h"

namespace tessera::engine::avx2 {
namespace {

// The four sums of four vectors.
inline __m128 FourSums(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 ab = _mm256_hadd_ps(a, b);
  const __m256 cd = _mm256_hadd_ps(c, d);
  const __m256 abcd = _mm256_hadd_ps(ab, cd);
  return _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1));
}

// kRows rows of the state for one token; sums to `out`.
template <int kRows>
void Rows(const ScanArgs& args, float* state, const float* x, const float* b, const float* c,
          float dt, float decay, float* out) {
  const __m256 decays = _mm256_set1_ps(decay);
  __m256 inputs[kRows], sums[kRows];
  for (int r = 0; r < kRows; ++r) {
    inputs[r] = _mm256_set1_ps(dt * x[r]);
    sums[r] = _mm256_setzero_ps();
  }
  uint32_t n = 0;
  for (; n + 8 <= args.n; n += 8) {
    const __m256 bs = _mm256_loadu_ps(b + n);
    const __m256 cs = _mm256_loadu_ps(c + n);
    for (int r = 0; r < kRows; ++r) {
      float* const at = state + size_t{args.n} * r + n;
      const __m256 s = _mm256_fmadd_ps(decays, _mm256_loadu_ps(at), _mm256_mul_ps(inputs[r], bs));
      _mm256_storeu_ps(at, s);
      sums[r] = _mm256_fmadd_ps(s, cs, sums[r]);
    }
  }
  alignas(16) float total[4];
  if constexpr (kRows == 4) {
    _mm_store_ps(total, FourSums(sums[0], sums[1], sums[2], sums[3]));
  } else {
    const __m256 zero = _mm256_setzero_ps();
    _mm_store_ps(total, FourSums(sums[0], zero, zero, zero));
  }
  for (int r = 0; r < kRows; ++r) {
    float* const row = state + size_t{args.n} * r;
    for (uint32_t i = n; i < args.n; ++i) {
      row[i] = decay * row[i] + dt * x[r] * b[i];
      total[r] += row[i] * c[i];
    }
    out[r] = total[r] + args.d * x[r];
  }
}

}  // namespace

void ScanHead(const ScanArgs& args) {
  for (uint32_t t = 0; t < args.tokens; ++t) {
    const float dt = args.dt[t * args.dt_stride];
    const float decay = std::exp(args.a * dt);
    const float* const x = args.x + t * args.xbc_stride;
    const float* const b = args.b + t * args.xbc_stride;
    const float* const c = args.c + t * args.xbc_stride;
    float* const y = args.y + t * args.y_stride;
    uint32_t p = 0;
    for (; p + 4 <= args.head_dim; p += 4) {
      Rows<4>(args, args.state + size_t{p} * args.n, x + p, b, c, dt, decay, y + p);
    }
    for (; p < args.head_dim; ++p) {
      Rows<1>(args, args.state + size_t{p} * args.n, x + p, b, c, dt, decay, y + p);
    }
  }
}

}  // namespace tessera::engine::avx2

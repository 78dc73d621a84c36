#include "engine/kernels/vector/vector_avx2.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "engine/kernels/common/avx2_sum.h"

namespace tessera::engine::avx2 {
namespace {

// exp(x) for |x| clamped to 87: x = n ln2 + r with |r| <= ln2 / 2, then a Taylor polynomial of
// degree 7 in r (its remainder, r^8 / 8! / e^r < 8e-9, is below half an ulp), times 2^n.
inline __m256 Exp(__m256 x) {
  x = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(87.0f)), _mm256_set1_ps(-87.0f));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504089f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln2 in two parts, so that n * high is exact.
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.0f / 5040);
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) {
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c));
  }
  const __m256i exponent =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return _mm256_mul_ps(p, _mm256_castsi256_ps(exponent));
}

inline __m256 SiluOf(__m256 x) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 negative = _mm256_sub_ps(_mm256_setzero_ps(), x);
  return _mm256_div_ps(x, _mm256_add_ps(one, Exp(negative)));
}

inline float SiluOf(float x) { return x / (1.0f + std::exp(-x)); }

}  // namespace

float Dot(const float* a, const float* b, uint32_t n) {
  __m256 sum0 = _mm256_setzero_ps();
  __m256 sum1 = sum0;
  uint32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    sum0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), sum0);
    sum1 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8), sum1);
  }
  for (; i + 8 <= n; i += 8) {
    sum0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), sum0);
  }
  float sum = HorizontalSum(_mm256_add_ps(sum0, sum1));
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void Axpy(float alpha, const float* x, float* y, uint32_t n) {
  const __m256 factor = _mm256_set1_ps(alpha);
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i,
                     _mm256_fmadd_ps(factor, _mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
  }
  for (; i < n; ++i) y[i] += alpha * x[i];
}

void Scale(float alpha, float* y, uint32_t n) {
  const __m256 factor = _mm256_set1_ps(alpha);
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_mul_ps(factor, _mm256_loadu_ps(y + i)));
  for (; i < n; ++i) y[i] *= alpha;
}

void RmsNorm(const float* x, const float* weight, float eps, uint32_t n, float* y) {
  const float scale = 1.0f / std::sqrt(Dot(x, x, n) / static_cast<float>(n) + eps);
  const __m256 factor = _mm256_set1_ps(scale);
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 normed = _mm256_mul_ps(_mm256_loadu_ps(x + i), factor);
    _mm256_storeu_ps(y + i, _mm256_mul_ps(normed, _mm256_loadu_ps(weight + i)));
  }
  for (; i < n; ++i) y[i] = x[i] * scale * weight[i];
}

void Relu2(float* y, uint32_t n) {
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 positive = _mm256_max_ps(_mm256_loadu_ps(y + i), _mm256_setzero_ps());
    _mm256_storeu_ps(y + i, _mm256_mul_ps(positive, positive));
  }
  for (; i < n; ++i) {
    const float positive = std::max(y[i], 0.0f);
    y[i] = positive * positive;
  }
}

void Silu(float* y, uint32_t n) {
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, SiluOf(_mm256_loadu_ps(y + i)));
  for (; i < n; ++i) y[i] = SiluOf(y[i]);
}

void SiluMul(const float* z, float* y, uint32_t n) {
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(y + i), SiluOf(_mm256_loadu_ps(z + i))));
  }
  for (; i < n; ++i) y[i] *= SiluOf(z[i]);
}

float ExpSum(float shift, float* y, uint32_t n) {
  const __m256 shifts = _mm256_set1_ps(shift);
  __m256 sums = _mm256_setzero_ps();
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 value = Exp(_mm256_sub_ps(_mm256_loadu_ps(y + i), shifts));
    _mm256_storeu_ps(y + i, value);
    sums = _mm256_add_ps(sums, value);
  }
  float sum = HorizontalSum(sums);
  for (; i < n; ++i) {
    y[i] = std::exp(y[i] - shift);
    sum += y[i];
  }
  return sum;
}

}  // namespace tessera::engine::avx2

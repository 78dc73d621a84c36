#ifndef TESSERA_ENGINE_KERNELS_COMMON_AVX2_SUM_H_
#define TESSERA_ENGINE_KERNELS_COMMON_AVX2_SUM_H_

#include <immintrin.h>

namespace tessera::engine::avx2 {

// The sum of the eight floats of a vector. For files that are compiled for AVX2.
inline float HorizontalSum(__m256 v) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

}  // namespace tessera::engine::avx2

#endif  // TESSERA_ENGINE_KERNELS_COMMON_AVX2_SUM_H_

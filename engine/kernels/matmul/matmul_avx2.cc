// AVX2 and FMA. One token: each row is decoded in registers and multiplied at once, so the cost is
// reading it. Several tokens: four rows are decoded to float32 in scratch (which stays in the
// first-level cache), then multiplied with the tokens in tiles of 4 x 3: twelve accumulators, and
// seven loads for twelve multiply-adds.

#include <immintrin.h>

#include <algorithm>

#include "engine/kernels/common/avx2_sum.h"
#include "engine/kernels/matmul/matmul.h"

namespace tessera::engine::internal {
namespace {

using avx2::HorizontalSum;

// Eight elements from column c (a multiple of 8), without scale.
inline __m256 LoadF32(const std::byte* row, uint32_t c) {
  return _mm256_loadu_ps(reinterpret_cast<const float*>(row) + c);
}
inline __m256 LoadBf16(const std::byte* row, uint32_t c) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + size_t{c} * 2));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline __m256 LoadInt8(const std::byte* row, uint32_t c) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + c));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}
// One block of 32 columns from column c, as four vectors.
inline void LoadInt4(const std::byte* row, uint32_t c, __m256 out[4]) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + c / 2));
  const __m128i mask = _mm_set1_epi8(0xF);
  const __m128i offset = _mm_set1_epi8(8);
  const __m128i low = _mm_sub_epi8(_mm_and_si128(bytes, mask), offset);
  const __m128i high = _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(bytes, 4), mask), offset);
  out[0] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(low));
  out[1] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(low, 8)));
  out[2] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high));
  out[3] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(high, 8)));
}

float ScalarAt(const PackedMatrix& w, const std::byte* row, uint32_t c) {
  if (w.format == MatrixFormat::kF32) return reinterpret_cast<const float*>(row)[c];
  if (w.format == MatrixFormat::kBf16) {
    const uint16_t bits = reinterpret_cast<const uint16_t*>(row)[c];
    return __builtin_bit_cast(float, uint32_t{bits} << 16);
  }
  return static_cast<float>(static_cast<int8_t>(row[c]));
}

// sum over [begin, end) of row * x, without scale.
template <__m256 (*kLoad)(const std::byte*, uint32_t)>
float DotRange(const PackedMatrix& w, const std::byte* row, const float* x, uint32_t begin,
               uint32_t end) {
  __m256 sum0 = _mm256_setzero_ps();
  __m256 sum1 = sum0, sum2 = sum0, sum3 = sum0;
  uint32_t c = begin;
  for (; c + 32 <= end; c += 32) {
    sum0 = _mm256_fmadd_ps(kLoad(row, c), _mm256_loadu_ps(x + c), sum0);
    sum1 = _mm256_fmadd_ps(kLoad(row, c + 8), _mm256_loadu_ps(x + c + 8), sum1);
    sum2 = _mm256_fmadd_ps(kLoad(row, c + 16), _mm256_loadu_ps(x + c + 16), sum2);
    sum3 = _mm256_fmadd_ps(kLoad(row, c + 24), _mm256_loadu_ps(x + c + 24), sum3);
  }
  for (; c + 8 <= end; c += 8) {
    sum0 = _mm256_fmadd_ps(kLoad(row, c), _mm256_loadu_ps(x + c), sum0);
  }
  float sum = HorizontalSum(_mm256_add_ps(_mm256_add_ps(sum0, sum1), _mm256_add_ps(sum2, sum3)));
  for (; c < end; ++c) sum += ScalarAt(w, row, c) * x[c];
  return sum;
}

float DotInt4(const std::byte* row, const float* x, uint32_t begin, uint32_t end) {
  __m256 sum0 = _mm256_setzero_ps();
  __m256 sum1 = sum0, sum2 = sum0, sum3 = sum0;
  for (uint32_t c = begin; c < end; c += 32) {
    __m256 q[4];
    LoadInt4(row, c, q);
    sum0 = _mm256_fmadd_ps(q[0], _mm256_loadu_ps(x + c), sum0);
    sum1 = _mm256_fmadd_ps(q[1], _mm256_loadu_ps(x + c + 8), sum1);
    sum2 = _mm256_fmadd_ps(q[2], _mm256_loadu_ps(x + c + 16), sum2);
    sum3 = _mm256_fmadd_ps(q[3], _mm256_loadu_ps(x + c + 24), sum3);
  }
  return HorizontalSum(_mm256_add_ps(_mm256_add_ps(sum0, sum1), _mm256_add_ps(sum2, sum3)));
}

float DotRow(const PackedMatrix& w, uint32_t r, const float* x) {
  const std::byte* const row = w.data + r * w.row_bytes;
  if (w.format == MatrixFormat::kF32) return DotRange<LoadF32>(w, row, x, 0, w.cols);
  if (w.format == MatrixFormat::kBf16) return DotRange<LoadBf16>(w, row, x, 0, w.cols);
  const float* const scales = w.scales + size_t{r} * w.groups();
  float sum = 0;
  for (uint32_t g = 0; g < w.groups(); ++g) {
    const uint32_t begin = g * w.group_size;
    const uint32_t end = begin + w.group_size;
    sum +=
        scales[g] * (w.format == MatrixFormat::kInt4 ? DotInt4(row, x, begin, end)
                                                     : DotRange<LoadInt8>(w, row, x, begin, end));
  }
  return sum;
}

// Row r as float32, scales applied.
void DecodeRow(const PackedMatrix& w, uint32_t r, float* out) {
  const std::byte* const row = w.data + r * w.row_bytes;
  const bool scaled = w.group_size != 0;
  const uint32_t group_size = scaled ? w.group_size : w.cols;
  for (uint32_t begin = 0, g = 0; begin < w.cols; begin += group_size, ++g) {
    const float scale = scaled ? w.scales[size_t{r} * w.groups() + g] : 1.0f;
    const __m256 scales = _mm256_set1_ps(scale);
    const uint32_t end = begin + group_size;
    uint32_t c = begin;
    if (w.format == MatrixFormat::kInt4) {
      for (; c < end; c += 32) {
        __m256 q[4];
        LoadInt4(row, c, q);
        for (int i = 0; i < 4; ++i) _mm256_storeu_ps(out + c + 8 * i, _mm256_mul_ps(q[i], scales));
      }
      continue;
    }
    for (; c + 8 <= end; c += 8) {
      const __m256 q = w.format == MatrixFormat::kF32    ? LoadF32(row, c)
                       : w.format == MatrixFormat::kBf16 ? LoadBf16(row, c)
                                                         : LoadInt8(row, c);
      _mm256_storeu_ps(out + c, _mm256_mul_ps(q, scales));
    }
    for (; c < end; ++c) out[c] = ScalarAt(w, row, c) * scale;
  }
}

// kRows decoded rows times kTokens tokens.
template <int kRows, int kTokens>
void Tile(const float* rows, uint32_t cols, const MatMulArgs& args, uint32_t row, uint32_t token) {
  __m256 sums[kRows][kTokens];
  for (auto& of_row : sums) {
    for (__m256& sum : of_row) sum = _mm256_setzero_ps();
  }
  const float* const x = args.x + token * args.x_stride;
  uint32_t c = 0;
  for (; c + 8 <= cols; c += 8) {
    __m256 values[kTokens];
    for (int t = 0; t < kTokens; ++t) values[t] = _mm256_loadu_ps(x + t * args.x_stride + c);
    for (int r = 0; r < kRows; ++r) {
      const __m256 weights = _mm256_loadu_ps(rows + size_t{cols} * r + c);
      for (int t = 0; t < kTokens; ++t) {
        sums[r][t] = _mm256_fmadd_ps(weights, values[t], sums[r][t]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTokens; ++t) {
      float sum = HorizontalSum(sums[r][t]);
      for (uint32_t i = c; i < cols; ++i) {
        sum += rows[size_t{cols} * r + i] * x[t * args.x_stride + i];
      }
      float& y = args.y[(token + t) * args.y_stride + row + r];
      y = args.add ? y + sum : sum;
    }
  }
}

template <int kRows>
void TileTokens(const float* rows, uint32_t cols, const MatMulArgs& args, uint32_t row) {
  uint32_t token = 0;
  for (; token + 3 <= args.tokens; token += 3) Tile<kRows, 3>(rows, cols, args, row, token);
  if (args.tokens - token == 2) Tile<kRows, 2>(rows, cols, args, row, token);
  if (args.tokens - token == 1) Tile<kRows, 1>(rows, cols, args, row, token);
}

}  // namespace

void MatMulAvx2(const PackedMatrix& w, uint32_t row_begin, uint32_t row_end,
                const MatMulArgs& args) {
  if (args.tokens == 1) {
    for (uint32_t r = row_begin; r < row_end; ++r) {
      const float sum = DotRow(w, r, args.x);
      args.y[r] = args.add ? args.y[r] + sum : sum;
    }
    return;
  }
  for (uint32_t r = row_begin; r < row_end; r += kMatMulRowBlock) {
    const uint32_t rows = std::min(kMatMulRowBlock, row_end - r);
    for (uint32_t i = 0; i < rows; ++i) DecodeRow(w, r + i, args.scratch + size_t{w.cols} * i);
    if (rows == kMatMulRowBlock) {
      TileTokens<kMatMulRowBlock>(args.scratch, w.cols, args, r);
      continue;
    }
    for (uint32_t i = 0; i < rows; ++i) {
      TileTokens<1>(args.scratch + size_t{w.cols} * i, w.cols, args, r + i);
    }
  }
}

}  // namespace tessera::engine::internal

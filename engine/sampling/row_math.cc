#include "engine/sampling/row_math.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tessera::engine {
namespace {

// Vectors of the compiler: four floats are one SSE or NEON register, so this file needs no
// run-time choice of instructions; eight would not pay for a pass that memory limits.
typedef float Float4 __attribute__((vector_size(16)));
typedef int32_t Int4 __attribute__((vector_size(16)));

// Rows are walked in blocks that stay in the first-level cache: the block of the maximum is read
// again to find its index, and sums of a block are exact enough in float.
constexpr size_t kBlock = 1024;

Float4 Load4(const float* p) {
  Float4 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

float MaxOf4(Float4 v) { return std::max(std::max(v[0], v[1]), std::max(v[2], v[3])); }

Float4 Splat(float x) { return Float4{x, x, x, x}; }

// exp for x in (-infinity, 0]: 2^n * 2^r by a polynomial in r * ln 2, |r| <= 1/2.
Float4 Exp4(Float4 x) {
  constexpr float kLow = -87.0f;
  const Int4 tiny = x < Splat(kLow);
  x = tiny ? Splat(kLow) : x;
  // Adding 1.5 * 2^23 rounds to a whole number that then sits in the low mantissa bits.
  const Float4 magic = Splat(12582912.0f);
  const Float4 shifted = x * 1.44269504f + magic;
  const Float4 n = shifted - magic;
  // ln 2 in two parts, so that the difference keeps its bits.
  const Float4 r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Float4 p = Splat(1.0f / 5040);
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  typedef uint32_t Uint4 __attribute__((vector_size(16)));
  const Uint4 exponent = ((Uint4)shifted << 23) + (127u << 23);
  const Float4 result = p * (Float4)exponent;
  return tiny ? Splat(0.0f) : result;
}

}  // namespace

RowMax FindMax(std::span<const float> row) {
  const float kLowest = -std::numeric_limits<float>::infinity();
  RowMax best;
  best.value = kLowest;
  size_t best_block = 0;
  Int4 nan = {0, 0, 0, 0};
  bool tail_nan = false;
  for (size_t begin = 0; begin < row.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, row.size());
    Float4 a = Splat(kLowest);
    Float4 b = a;
    size_t i = begin;
    for (; i + 8 <= end; i += 8) {
      const Float4 x = Load4(&row[i]);
      const Float4 y = Load4(&row[i + 4]);
      nan |= (x != x) | (y != y);
      a = x > a ? x : a;
      b = y > b ? y : b;
    }
    float block_max = std::max(MaxOf4(a), MaxOf4(b));
    for (; i < end; ++i) {
      tail_nan |= std::isnan(row[i]);
      if (row[i] > block_max) block_max = row[i];
    }
    if (block_max > best.value) {
      best.value = block_max;
      best_block = begin;
    }
  }
  best.has_nan = tail_nan || (nan[0] | nan[1] | nan[2] | nan[3]) != 0;
  const size_t end = std::min(best_block + kBlock, row.size());
  for (size_t i = best_block; i < end; ++i) {
    if (row[i] == best.value) {
      best.index = static_cast<uint32_t>(i);
      break;
    }
  }
  return best;
}

double ExpWeights(std::span<const float> row, float max, float inverse_temperature,
                  std::span<float> weights) {
  double total = 0;
  for (size_t begin = 0; begin < row.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, row.size());
    Float4 sum = Splat(0);
    size_t i = begin;
    for (; i + 4 <= end; i += 4) {
      const Float4 w = Exp4((Load4(&row[i]) - max) * inverse_temperature);
      if (!weights.empty()) std::memcpy(&weights[i], &w, sizeof w);
      sum += w;
    }
    total += static_cast<double>(sum[0]) + sum[1] + sum[2] + sum[3];
    for (; i < end; ++i) {
      const float w = Exp4(Splat((row[i] - max) * inverse_temperature))[0];
      if (!weights.empty()) weights[i] = w;
      total += w;
    }
  }
  return total;
}

}  // namespace tessera::engine

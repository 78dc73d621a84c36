#include <algorithm>
#include <cmath>

#include "engine/kernels/vector/vector.h"
#include "engine/kernels/vector/vector_avx2.h"

namespace tessera::engine {

float Dot(CpuLevel level, const float* a, const float* b, uint32_t n) {
  if (level == CpuLevel::kAvx2) return avx2::Dot(a, b, n);
  float sum = 0;
  for (uint32_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void Axpy(CpuLevel level, float alpha, const float* x, float* y, uint32_t n) {
  if (level == CpuLevel::kAvx2) return avx2::Axpy(alpha, x, y, n);
  for (uint32_t i = 0; i < n; ++i) y[i] += alpha * x[i];
}

void Scale(CpuLevel level, float alpha, float* y, uint32_t n) {
  if (level == CpuLevel::kAvx2) return avx2::Scale(alpha, y, n);
  for (uint32_t i = 0; i < n; ++i) y[i] *= alpha;
}

void RmsNorm(CpuLevel level, const float* x, const float* weight, float eps, uint32_t n, float* y) {
  if (level == CpuLevel::kAvx2) return avx2::RmsNorm(x, weight, eps, n, y);
  float squares = 0;
  for (uint32_t i = 0; i < n; ++i) squares += x[i] * x[i];
  const float scale = 1.0f / std::sqrt(squares / static_cast<float>(n) + eps);
  for (uint32_t i = 0; i < n; ++i) y[i] = x[i] * scale * weight[i];
}

void Relu2(CpuLevel level, float* y, uint32_t n) {
  if (level == CpuLevel::kAvx2) return avx2::Relu2(y, n);
  for (uint32_t i = 0; i < n; ++i) {
    const float positive = std::max(y[i], 0.0f);
    y[i] = positive * positive;
  }
}

void Silu(CpuLevel level, float* y, uint32_t n) {
  if (level == CpuLevel::kAvx2) return avx2::Silu(y, n);
  for (uint32_t i = 0; i < n; ++i) y[i] = y[i] / (1.0f + std::exp(-y[i]));
}

void SiluMul(CpuLevel level, const float* z, float* y, uint32_t n) {
  if (level == CpuLevel::kAvx2) return avx2::SiluMul(z, y, n);
  for (uint32_t i = 0; i < n; ++i) y[i] *= z[i] / (1.0f + std::exp(-z[i]));
}

float ExpSum(CpuLevel level, float shift, float* y, uint32_t n) {
  if (level == CpuLevel::kAvx2) return avx2::ExpSum(shift, y, n);
  float sum = 0;
  for (uint32_t i = 0; i < n; ++i) {
    y[i] = std::exp(y[i] - shift);
    sum += y[i];
  }
  return sum;
}

}  // namespace tessera::engine

#ifndef TESSERA_ENGINE_KERNELS_VECTOR_VECTOR_H_
#define TESSERA_ENGINE_KERNELS_VECTOR_VECTOR_H_

#include <cstdint>

#include "engine/kernels/common/cpu_level.h"

// Loops over one vector of n float32. Any alignment; outputs must not overlap inputs unless the
// argument is both. Cost: one pass, or two for RmsNorm.

namespace tessera::engine {

// sum_i a[i] * b[i]
float Dot(CpuLevel level, const float* a, const float* b, uint32_t n);
// y[i] += alpha * x[i]
void Axpy(CpuLevel level, float alpha, const float* x, float* y, uint32_t n);
// y[i] *= alpha
void Scale(CpuLevel level, float alpha, float* y, uint32_t n);
// y[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i]. y may be x.
void RmsNorm(CpuLevel level, const float* x, const float* weight, float eps, uint32_t n, float* y);
// y[i] = max(y[i], 0)^2
void Relu2(CpuLevel level, float* y, uint32_t n);
// y[i] = y[i] / (1 + exp(-y[i]))
void Silu(CpuLevel level, float* y, uint32_t n);
// y[i] *= z[i] / (1 + exp(-z[i]))
void SiluMul(CpuLevel level, const float* z, float* y, uint32_t n);
// y[i] = exp(y[i] - shift), at most 2 ulp from exact; returns the sum. y[i] <= shift.
float ExpSum(CpuLevel level, float shift, float* y, uint32_t n);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_KERNELS_VECTOR_VECTOR_H_

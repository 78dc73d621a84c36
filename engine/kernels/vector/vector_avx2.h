#ifndef TESSERA_ENGINE_KERNELS_VECTOR_VECTOR_AVX2_H_
#define TESSERA_ENGINE_KERNELS_VECTOR_VECTOR_AVX2_H_

#include <cstdint>

// The AVX2 versions of vector.h; called through it.
namespace tessera::engine::avx2 {

float Dot(const float* a, const float* b, uint32_t n);
void Axpy(float alpha, const float* x, float* y, uint32_t n);
void Scale(float alpha, float* y, uint32_t n);
void RmsNorm(const float* x, const float* weight, float eps, uint32_t n, float* y);
void Relu2(float* y, uint32_t n);
void Silu(float* y, uint32_t n);
void SiluMul(const float* z, float* y, uint32_t n);
float ExpSum(float shift, float* y, uint32_t n);

}  // namespace tessera::engine::avx2

#endif  // TESSERA_ENGINE_KERNELS_VECTOR_VECTOR_AVX2_H_

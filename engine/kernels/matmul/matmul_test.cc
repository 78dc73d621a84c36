#include "engine/kernels/matmul/matmul.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

struct Case {
  MatrixFormat format;
  uint32_t rows, cols, group_size;
};

// A random matrix with its storage, and the same in plain float32.
struct Matrix {
  std::vector<std::byte> data;
  std::vector<float> scales, plain;
  PackedMatrix view;
};

Matrix Make(const Case& shape, std::mt19937& random) {
  Matrix m;
  const size_t row_bytes = PackedRowBytes(shape.format, shape.cols);
  m.data.resize(row_bytes * shape.rows);
  m.plain.resize(size_t{shape.rows} * shape.cols);
  const uint32_t groups = shape.group_size == 0 ? 0 : shape.cols / shape.group_size;
  std::uniform_real_distribution<float> real(-1, 1);
  for (uint32_t i = 0; i < shape.rows * groups; ++i)
    m.scales.push_back(0.05f + std::abs(real(random)));
  std::vector<int8_t> q(shape.cols);
  std::vector<float> values(shape.cols);
  for (uint32_t r = 0; r < shape.rows; ++r) {
    std::byte* const out = m.data.data() + r * row_bytes;
    for (uint32_t c = 0; c < shape.cols; ++c) {
      const float scale = groups == 0 ? 1 : m.scales[r * groups + c / shape.group_size];
      q[c] = shape.format == MatrixFormat::kInt4 ? static_cast<int>(random() % 16) - 8
                                                 : static_cast<int>(random() % 256) - 128;
      values[c] = std::round(real(random) * 128) / 128;  // exact in bf16
      m.plain[size_t{r} * shape.cols + c] = groups == 0 ? values[c] : q[c] * scale;
    }
    if (shape.format == MatrixFormat::kF32) PackF32Row(values.data(), shape.cols, out);
    if (shape.format == MatrixFormat::kBf16) PackBf16Row(values.data(), shape.cols, out);
    if (shape.format == MatrixFormat::kInt8) PackInt8Row(q.data(), shape.cols, out);
    if (shape.format == MatrixFormat::kInt4) PackInt4Row(q.data(), shape.cols, out);
  }
  m.view = {shape.format, shape.rows,      shape.cols,      m.data.data(),
            row_bytes,    m.scales.data(), shape.group_size};
  return m;
}

// Every level against float64, within the rounding of a float32 sum: |error| <= cols * eps * sum|w
// x|.
TEST(MatMul, EveryFormatAndLevelAgreesWithFloat64OverOddShapes) {
  std::mt19937 random(3);
  const Case cases[] = {
      {MatrixFormat::kF32, 7, 37, 0},     {MatrixFormat::kF32, 1, 1, 0},
      {MatrixFormat::kBf16, 9, 64, 0},    {MatrixFormat::kBf16, 5, 41, 0},
      {MatrixFormat::kInt8, 13, 48, 48},  {MatrixFormat::kInt8, 6, 43, 43},
      {MatrixFormat::kInt8, 8, 96, 32},   {MatrixFormat::kInt4, 11, 96, 32},
      {MatrixFormat::kInt4, 4, 256, 128}, {MatrixFormat::kInt4, 3, 64, 64},
  };
  std::uniform_real_distribution<float> real(-2, 2);
  for (const Case& shape : cases) {
    const Matrix m = Make(shape, random);
    for (uint32_t tokens : {1u, 2u, 3u, 4u, 7u, 16u}) {
      const size_t x_stride = shape.cols + 3, y_stride = shape.rows + 2;
      std::vector<float> x(x_stride * tokens), scratch(MatMulScratchFloats(shape.cols));
      for (float& value : x) value = real(random);
      for (CpuLevel level : {CpuLevel::kReference, DetectCpuLevel()}) {
        for (bool add : {false, true}) {
          std::vector<float> y(y_stride * tokens, add ? 1.0f : NAN);
          const MatMulArgs args = {x.data(), x_stride, tokens,        y.data(),
                                   y_stride, add,      scratch.data()};
          const uint32_t middle = shape.rows / 2;
          MatMul(level, m.view, 0, middle, args);
          MatMul(level, m.view, middle, shape.rows, args);
          for (uint32_t t = 0; t < tokens; ++t) {
            for (uint32_t r = 0; r < shape.rows; ++r) {
              double sum = add ? 1 : 0, size = add ? 1 : 0;
              for (uint32_t c = 0; c < shape.cols; ++c) {
                const double product =
                    double{m.plain[size_t{r} * shape.cols + c]} * x[t * x_stride + c];
                sum += product;
                size += std::abs(product);
              }
              ASSERT_NEAR(y[t * y_stride + r], sum, (shape.cols + 2) * 1.2e-7 * size)
                  << "format " << static_cast<int>(shape.format) << " cols " << shape.cols;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera::engine

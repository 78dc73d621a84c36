#include "engine/kernels/vector/vector.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

class VectorTest : public testing::TestWithParam<uint32_t> {
 protected:
  std::vector<float> Random(float low, float high) {
    std::uniform_real_distribution<float> real(low, high);
    std::vector<float> values(GetParam());
    for (float& value : values) value = real(random_);
    return values;
  }
  std::mt19937 random_{GetParam() + 1};
};

constexpr CpuLevel kLevels[] = {CpuLevel::kReference, CpuLevel::kAvx2};
bool Has(CpuLevel level) { return level == CpuLevel::kReference || DetectCpuLevel() == level; }

TEST_P(VectorTest, SumsAgreeWithFloat64) {
  const uint32_t n = GetParam();
  const std::vector<float> a = Random(-2, 2), b = Random(-2, 2);
  double sum = 0, size = 0, squares = 0;
  for (uint32_t i = 0; i < n; ++i) {
    sum += double{a[i]} * b[i];
    size += std::abs(double{a[i]} * b[i]);
    squares += double{a[i]} * a[i];
  }
  for (CpuLevel level : kLevels) {
    if (!Has(level)) continue;
    EXPECT_NEAR(Dot(level, a.data(), b.data(), n), sum, n * 6e-8 * size + 1e-30);
    if (n == 0) continue;
    std::vector<float> y(n);
    RmsNorm(level, a.data(), b.data(), 1e-5f, n, y.data());
    for (uint32_t i = 0; i < n; ++i) {
      const double expected = a[i] / std::sqrt(squares / n + 1e-5) * b[i];
      EXPECT_NEAR(y[i], expected, (n * 6e-8 + 3e-7) * std::abs(expected));
    }
  }
}

TEST_P(VectorTest, ElementwiseFunctionsAgreeWithFloat64) {
  const uint32_t n = GetParam();
  const std::vector<float> a = Random(-30, 30), b = Random(-90, 90);
  const auto silu = [](double v) { return v / (1 + std::exp(-v)); };
  for (CpuLevel level : kLevels) {
    if (!Has(level)) continue;
    std::vector<float> y = b, z = b, relu = a, scaled = a, sum = a;
    Silu(level, y.data(), n);
    SiluMul(level, a.data(), z.data(), n);
    Relu2(level, relu.data(), n);
    Scale(level, 3, scaled.data(), n);
    Axpy(level, 0.5f, b.data(), sum.data(), n);
    for (uint32_t i = 0; i < n; ++i) {
      EXPECT_NEAR(y[i], silu(b[i]), 4e-7 * std::abs(silu(b[i])) + 1e-35);
      EXPECT_NEAR(z[i], b[i] * silu(a[i]), 4e-7 * std::abs(b[i] * silu(a[i])));
      EXPECT_EQ(relu[i], a[i] > 0 ? a[i] * a[i] : 0);
      EXPECT_EQ(scaled[i], 3 * a[i]);
      EXPECT_NEAR(sum[i], a[i] + 0.5 * b[i], 1e-5);
    }
  }
}

TEST_P(VectorTest, ExponentialsAgreeWithFloat64) {
  const uint32_t n = GetParam();
  const std::vector<float> a = Random(-80, 0);
  for (CpuLevel level : kLevels) {
    if (!Has(level)) continue;
    std::vector<float> y = a;
    const float sum = ExpSum(level, 0.25f, y.data(), n);
    double expected = 0;
    for (uint32_t i = 0; i < n; ++i) {
      EXPECT_NEAR(y[i], std::exp(double{a[i] - 0.25f}), 3e-7 * std::exp(double{a[i] - 0.25f}));
      expected += y[i];
    }
    EXPECT_NEAR(sum, expected, n * 6e-8 * expected);
  }
}

INSTANTIATE_TEST_SUITE_P(OddLengths, VectorTest, testing::Values(0, 1, 7, 8, 9, 16, 31, 64, 257));

}  // namespace
}  // namespace tessera::engine

#include "engine/weights/weight_matrix.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

TEST(Dequantize, ReadsInt4InGroupsWithZeroPointsPackedAlongTheRows) {
  // One row of eight: stored 0..7 is q -8..-1; groups of four with scales 1 and 0.5.
  const uint32_t packed[] = {0x76543210};
  const float scales[] = {1.0f, 0.5f};
  const uint32_t zeros[] = {0x9, 0x6};  // zero points 1 and -2 of row 0
  WeightMatrix m;
  m.format = WeightFormat::kInt4;
  m.rows = 1;
  m.cols = 8;
  m.data = reinterpret_cast<const std::byte*>(packed);
  m.row_bytes = 4;
  m.scale_format = ScaleFormat::kF32;
  m.scales = reinterpret_cast<const std::byte*>(scales);
  m.group_size = 4;
  m.offset_binary = true;
  std::vector<float> out(8);
  Dequantize(m, 0, 1, out.data());
  EXPECT_EQ(out, (std::vector<float>{-8, -7, -6, -5, -2, -1.5f, -1, -0.5f}));
  m.zero_points = zeros;
  Dequantize(m, 0, 1, out.data());
  EXPECT_EQ(out, (std::vector<float>{-9, -8, -7, -6, -1, -0.5f, 0, 0.5f}));
}

TEST(Dequantize, ReadsBothCodingsOfInt8) {
  const uint8_t stored[] = {0, 127, 128, 255};
  WeightMatrix m;
  m.format = WeightFormat::kInt8;
  m.rows = 1;
  m.cols = 4;
  m.row_bytes = 4;
  m.data = reinterpret_cast<const std::byte*>(stored);
  m.global_scale = 2.0f;
  std::vector<float> out(4);
  Dequantize(m, 0, 1, out.data());
  EXPECT_EQ(out, (std::vector<float>{0, 254, -256, -2}));
  m.offset_binary = true;
  Dequantize(m, 0, 1, out.data());
  EXPECT_EQ(out, (std::vector<float>{-256, -2, 0, 254}));
}

TEST(Decoders, KnowTheCornersOfEachFloat) {
  EXPECT_EQ(Fp8E4m3ToFloat(0x7e), 448.0f);
  EXPECT_EQ(Fp8E4m3ToFloat(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(Fp8E4m3ToFloat(0xb8), -1.0f);
  EXPECT_TRUE(std::isnan(Fp8E4m3ToFloat(0x7f)));
  EXPECT_EQ(E2m1ToFloat(7), 6.0f);
  EXPECT_EQ(E2m1ToFloat(9), -0.5f);
  EXPECT_EQ(F16ToFloat(0x7bff), 65504.0f);
  EXPECT_EQ(F16ToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_TRUE(std::isinf(F16ToFloat(0xfc00)));
  EXPECT_EQ(Bf16ToFloat(0x3f80), 1.0f);
}

}  // namespace
}  // namespace tessera::engine

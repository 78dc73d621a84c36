#include "engine/weights/weight_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/core/check.h"
#include "engine/weights/concat.h"

namespace tessera::engine {
namespace {

template <typename T>
T Load(const std::byte* data, uint64_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

uint32_t ScaleBytes(ScaleFormat format) {
  switch (format) {
    case ScaleFormat::kNone:
      return 0;
    case ScaleFormat::kF32:
      return 4;
    case ScaleFormat::kBf16:
    case ScaleFormat::kF16:
      return 2;
    case ScaleFormat::kFp8E4m3:
      return 1;
  }
  return 0;
}

uint32_t Nibble(const std::byte* row, uint32_t col) {
  const uint32_t octet = static_cast<uint32_t>(row[col / 2]);
  return col % 2 == 0 ? octet & 0xf : octet >> 4;
}

float ValueAt(const WeightMatrix& m, const std::byte* row, uint32_t r, uint32_t c) {
  switch (m.format) {
    case WeightFormat::kF32:
      return Load<float>(row, c);
    case WeightFormat::kBf16:
      return Bf16ToFloat(Load<uint16_t>(row, c));
    case WeightFormat::kF16:
      return F16ToFloat(Load<uint16_t>(row, c));
    case WeightFormat::kFp8E4m3:
      return Fp8E4m3ToFloat(static_cast<uint8_t>(row[c]));
    case WeightFormat::kNvfp4:
      return E2m1ToFloat(static_cast<uint8_t>(Nibble(row, c)));
    case WeightFormat::kInt8:
    case WeightFormat::kInt4:
      return static_cast<float>(QuantizedAt(m, r, c));
  }
  return 0;
}

}  // namespace

std::string_view WeightFormatName(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return "f32";
    case WeightFormat::kBf16:
      return "bf16";
    case WeightFormat::kF16:
      return "f16";
    case WeightFormat::kInt8:
      return "int8";
    case WeightFormat::kInt4:
      return "int4";
    case WeightFormat::kFp8E4m3:
      return "fp8_e4m3";
    case WeightFormat::kNvfp4:
      return "nvfp4";
  }
  return "?";
}

int WeightBits(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return 32;
    case WeightFormat::kBf16:
    case WeightFormat::kF16:
      return 16;
    case WeightFormat::kInt8:
    case WeightFormat::kFp8E4m3:
      return 8;
    case WeightFormat::kInt4:
    case WeightFormat::kNvfp4:
      return 4;
  }
  return 0;
}

uint64_t WeightMatrix::bytes() const {
  uint64_t total = rows * row_bytes + uint64_t{rows} * groups() * ScaleBytes(scale_format);
  if (zero_points != nullptr) {
    total += (uint64_t{rows} * WeightBits(format) + 31) / 32 * groups() * 4;
  }
  return total;
}

float Bf16ToFloat(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

float F16ToFloat(uint16_t bits) {
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  float value;
  if (exponent == 0x1f) {
    value = mantissa == 0 ? std::numeric_limits<float>::infinity()
                          : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + 1024), static_cast<int>(exponent) - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

float Fp8E4m3ToFloat(uint8_t bits) {
  const uint32_t exponent = (bits >> 3) & 0xf;
  const uint32_t mantissa = bits & 7;
  float value;
  if (exponent == 0xf && mantissa == 7) {
    value = std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -9);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + 8), static_cast<int>(exponent) - 10);
  }
  return (bits & 0x80) != 0 ? -value : value;
}

float E2m1ToFloat(uint8_t code) {
  static constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float value = kValues[code & 7];
  return (code & 8) != 0 ? -value : value;
}

float ScaleAt(const WeightMatrix& m, uint32_t row, uint32_t group) {
  const uint64_t index = uint64_t{row} * m.groups() + group;
  switch (m.scale_format) {
    case ScaleFormat::kNone:
      return 1.0f;
    case ScaleFormat::kF32:
      return Load<float>(m.scales, index);
    case ScaleFormat::kBf16:
      return Bf16ToFloat(Load<uint16_t>(m.scales, index));
    case ScaleFormat::kF16:
      return F16ToFloat(Load<uint16_t>(m.scales, index));
    case ScaleFormat::kFp8E4m3:
      return Fp8E4m3ToFloat(Load<uint8_t>(m.scales, index));
  }
  return 1.0f;
}

int ZeroPointAt(const WeightMatrix& m, uint32_t row, uint32_t group) {
  if (m.zero_points == nullptr) return 0;
  const uint32_t bits = static_cast<uint32_t>(WeightBits(m.format));
  const uint64_t bit = uint64_t{row} * bits;
  const uint32_t word = m.zero_points[bit / 32 * m.groups() + group];
  const uint32_t stored = (word >> (bit % 32)) & ((1u << bits) - 1);
  return static_cast<int>(stored) - (1 << (bits - 1));
}

int QuantizedAt(const WeightMatrix& m, uint32_t row, uint32_t col) {
  const std::byte* data = m.data + row * m.row_bytes;
  if (m.format == WeightFormat::kInt4) return static_cast<int>(Nibble(data, col)) - 8;
  TESSERA_CHECK(m.format == WeightFormat::kInt8, std::string(WeightFormatName(m.format)));
  const uint8_t stored = static_cast<uint8_t>(data[col]);
  return m.offset_binary ? static_cast<int>(stored) - 128 : static_cast<int8_t>(stored);
}

void Dequantize(const WeightMatrix& m, uint32_t row_begin, uint32_t row_end, float* out) {
  TESSERA_CHECK(row_begin <= row_end && row_end <= m.rows,
                Concat(row_begin, " ", row_end, " ", m.rows));
  for (uint32_t r = row_begin; r < row_end; ++r) {
    const std::byte* row = m.data + r * m.row_bytes;
    float* to = out + uint64_t{r - row_begin} * m.cols;
    if (m.group_size == 0) {
      for (uint32_t c = 0; c < m.cols; ++c) to[c] = ValueAt(m, row, r, c) * m.global_scale;
      continue;
    }
    for (uint32_t g = 0; g < m.groups(); ++g) {
      const float scale = ScaleAt(m, r, g) * m.global_scale;
      const float zero = static_cast<float>(ZeroPointAt(m, r, g));
      const uint32_t end = std::min<uint64_t>(m.cols, uint64_t{g + 1} * m.group_size);
      for (uint32_t c = g * m.group_size; c < end; ++c) {
        to[c] = (ValueAt(m, row, r, c) - zero) * scale;
      }
    }
  }
}

}  // namespace tessera::engine

#include "engine/layers/packing.h"

#include <algorithm>

namespace tessera::engine {
namespace {

// int4's blocks of 32 columns must not cross a group.
bool FitsInt4(const WeightMatrix& m) { return m.cols % 32 == 0 && m.group_size % 32 == 0; }

MatrixFormat FormatFor(const WeightMatrix& m) {
  switch (m.format) {
    case WeightFormat::kBf16:
      return MatrixFormat::kBf16;
    case WeightFormat::kInt8:
    case WeightFormat::kInt4: {
      const bool plain =
          m.zero_points == nullptr && m.group_size != 0 && m.cols % m.group_size == 0;
      if (!plain) return MatrixFormat::kF32;
      return m.format == WeightFormat::kInt4 && FitsInt4(m) ? MatrixFormat::kInt4
                                                            : MatrixFormat::kInt8;
    }
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kFp8E4m3:
    case WeightFormat::kNvfp4:
      return MatrixFormat::kF32;
  }
  return MatrixFormat::kF32;
}

}  // namespace

PackedMatrix Pack(const WeightMatrix& matrix, Arena& arena) {
  PackedMatrix packed;
  packed.format = FormatFor(matrix);
  packed.rows = matrix.rows;
  packed.cols = matrix.cols;
  packed.row_bytes = PackedRowBytes(packed.format, matrix.cols);
  std::byte* const data = arena.Take<std::byte>(packed.row_bytes * matrix.rows);
  packed.data = data;
  const bool integer = packed.format == MatrixFormat::kInt8 || packed.format == MatrixFormat::kInt4;
  float* scales = nullptr;
  if (integer) {
    packed.group_size = matrix.group_size;
    scales = arena.Take<float>(size_t{matrix.rows} * packed.groups());
    packed.scales = scales;
  }
  if (arena.counting()) return packed;

  std::vector<float> values(integer ? 0 : matrix.cols);
  std::vector<int8_t> q(integer ? matrix.cols : 0);
  for (uint32_t r = 0; r < matrix.rows; ++r) {
    std::byte* const row = data + r * packed.row_bytes;
    if (!integer) {
      Dequantize(matrix, r, r + 1, values.data());
      packed.format == MatrixFormat::kF32 ? PackF32Row(values.data(), matrix.cols, row)
                                          : PackBf16Row(values.data(), matrix.cols, row);
      continue;
    }
    for (uint32_t c = 0; c < matrix.cols; ++c) {
      q[c] = static_cast<int8_t>(QuantizedAt(matrix, r, c));
    }
    packed.format == MatrixFormat::kInt4 ? PackInt4Row(q.data(), matrix.cols, row)
                                         : PackInt8Row(q.data(), matrix.cols, row);
    for (uint32_t g = 0; g < packed.groups(); ++g) {
      scales[size_t{r} * packed.groups() + g] = ScaleAt(matrix, r, g) * matrix.global_scale;
    }
  }
  return packed;
}

const float* PackVector(const std::vector<float>& values, Arena& arena) {
  float* const copy = arena.Take<float>(values.size());
  if (!arena.counting()) std::copy(values.begin(), values.end(), copy);
  return copy;
}

}  // namespace tessera::engine

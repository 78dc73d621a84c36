#include <bit>
#include <cstring>

#include "engine/kernels/matmul/matmul.h"

namespace tessera::engine {
namespace {

float ElementAt(const PackedMatrix& w, uint32_t row, uint32_t col) {
  const std::byte* const data = w.data + row * w.row_bytes;
  const float scale =
      w.group_size == 0 ? 1.0f : w.scales[size_t{row} * w.groups() + col / w.group_size];
  switch (w.format) {
    case MatrixFormat::kF32: {
      float value;
      std::memcpy(&value, data + size_t{col} * 4, 4);
      return value;
    }
    case MatrixFormat::kBf16: {
      uint16_t bits;
      std::memcpy(&bits, data + size_t{col} * 2, 2);
      return std::bit_cast<float>(uint32_t{bits} << 16);
    }
    case MatrixFormat::kInt8:
      return static_cast<float>(static_cast<int8_t>(data[col])) * scale;
    case MatrixFormat::kInt4: {
      const uint8_t byte = static_cast<uint8_t>(data[col / 32 * 16 + col % 16]);
      const int stored = col % 32 < 16 ? byte & 0xF : byte >> 4;
      return static_cast<float>(stored - 8) * scale;
    }
  }
  return 0.0f;
}

}  // namespace

size_t PackedRowBytes(MatrixFormat format, uint32_t cols) {
  switch (format) {
    case MatrixFormat::kF32:
      return size_t{cols} * 4;
    case MatrixFormat::kBf16:
      return size_t{cols} * 2;
    case MatrixFormat::kInt8:
      return cols;
    case MatrixFormat::kInt4:
      return cols / 2;
  }
  return 0;
}

void PackInt8Row(const int8_t* q, uint32_t cols, std::byte* out) { std::memcpy(out, q, cols); }

void PackInt4Row(const int8_t* q, uint32_t cols, std::byte* out) {
  for (uint32_t block = 0; block < cols; block += 32) {
    for (uint32_t j = 0; j < 16; ++j) {
      const int low = q[block + j] + 8;
      const int high = q[block + j + 16] + 8;
      out[block / 2 + j] = static_cast<std::byte>(low | (high << 4));
    }
  }
}

void PackF32Row(const float* values, uint32_t cols, std::byte* out) {
  std::memcpy(out, values, size_t{cols} * 4);
}

void PackBf16Row(const float* values, uint32_t cols, std::byte* out) {
  for (uint32_t c = 0; c < cols; ++c) {
    const uint16_t bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(values[c]) >> 16);
    std::memcpy(out + size_t{c} * 2, &bits, 2);
  }
}

void UnpackRow(const PackedMatrix& w, uint32_t row, float* out) {
  for (uint32_t c = 0; c < w.cols; ++c) out[c] = ElementAt(w, row, c);
}

void MatMul(CpuLevel level, const PackedMatrix& w, uint32_t row_begin, uint32_t row_end,
            const MatMulArgs& args) {
#if defined(__x86_64__)
  if (level == CpuLevel::kAvx2) return internal::MatMulAvx2(w, row_begin, row_end, args);
#endif
  internal::MatMulReference(w, row_begin, row_end, args);
}

namespace internal {

void MatMulReference(const PackedMatrix& w, uint32_t row_begin, uint32_t row_end,
                     const MatMulArgs& args) {
  for (uint32_t r = row_begin; r < row_end; ++r) {
    for (uint32_t c = 0; c < w.cols; ++c) args.scratch[c] = ElementAt(w, r, c);
    for (uint32_t t = 0; t < args.tokens; ++t) {
      const float* const x = args.x + t * args.x_stride;
      float sum = 0;
      for (uint32_t c = 0; c < w.cols; ++c) sum += args.scratch[c] * x[c];
      float& y = args.y[t * args.y_stride + r];
      y = args.add ? y + sum : sum;
    }
  }
}

}  // namespace internal
}  // namespace tessera::engine

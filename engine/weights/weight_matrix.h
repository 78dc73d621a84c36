#ifndef TESSERA_ENGINE_WEIGHTS_WEIGHT_MATRIX_H_
#define TESSERA_ENGINE_WEIGHTS_WEIGHT_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

// One Linear of a checkpoint as it is stored, and the plain way to read it as float32.

namespace tessera::engine {

enum class WeightFormat : uint8_t {
  kF32,      // 4 bytes an element
  kBf16,     // 2 bytes
  kF16,      // 2 bytes
  kInt8,     // 1 byte; `offset_binary` says how it is coded
  kInt4,     // two an octet, element 2j in the low nibble; always offset binary (stored = q + 8)
  kFp8E4m3,  // 1 byte
  kNvfp4,    // two E2M1 an octet, element 2j in the low nibble
};
// "f32", "bf16", "f16", "int8", "int4", "fp8_e4m3", "nvfp4".
std::string_view WeightFormatName(WeightFormat format);
// Bits of one element, scales not counted.
int WeightBits(WeightFormat format);

enum class ScaleFormat : uint8_t { kNone, kF32, kBf16, kF16, kFp8E4m3 };

// A view: owns nothing; what `data`, `scales` and `zero_points` point at lives as long as the
// Checkpoint it came from. Copying it is free. Any thread may read.
//
// Element (r, c) is
//     (q(r, c) - zero(r, c / group_size)) * scale(r, c / group_size) * global_scale
// with every factor that a format lacks left out (zero 0, scale 1). Floats: q is the value itself.
// All pointers are aligned for their element type (packed integers: 4 bytes).
struct WeightMatrix {
  WeightFormat format = WeightFormat::kF32;
  uint32_t rows = 0;  // out
  uint32_t cols = 0;  // in
  const std::byte* data = nullptr;
  uint64_t row_bytes = 0;  // from one row to the next; integers are padded to 32-bit words

  ScaleFormat scale_format = ScaleFormat::kNone;
  const std::byte* scales = nullptr;  // [rows, groups()], row-major
  uint32_t group_size = 0;            // columns that share a scale; cols: one scale a row. 0: none
  float global_scale = 1.0f;          // FP8 per tensor; second scale of NVFP4

  // kInt8 only: stored = q + 128 (pack-quantized); false: two's complement (int-quantized).
  bool offset_binary = false;
  // Null when symmetric. [ceil(rows * bits / 32), groups()] words: the zero points of one group
  // are packed along the rows, little end first, and offset binary like the weights.
  const uint32_t* zero_points = nullptr;

  uint32_t groups() const { return group_size == 0 ? 0 : (cols + group_size - 1) / group_size; }
  // Bytes of weights, scales and zero points: what reading all of it costs.
  uint64_t bytes() const;
};

// Decoders of single elements, for tests and for repacking.
float Bf16ToFloat(uint16_t bits);
float F16ToFloat(uint16_t bits);
float Fp8E4m3ToFloat(uint8_t bits);  // 0x7f and 0xff are NaN; there is no infinity
float E2m1ToFloat(uint8_t code);     // low four bits

// scale(r, g) without global_scale, and zero(r, g). 1 and 0 where the format has none.
float ScaleAt(const WeightMatrix& matrix, uint32_t row, uint32_t group);
int ZeroPointAt(const WeightMatrix& matrix, uint32_t row, uint32_t group);
// q(r, c) of an integer format, offset removed, zero point not subtracted.
int QuantizedAt(const WeightMatrix& matrix, uint32_t row, uint32_t col);

// The reference for every format: writes rows [row_begin, row_end) to `out`
// [row_end - row_begin, cols] float32, row-major. Rows out of range are our own bug and abort.
// Cost: a few operations an element, no allocation; not for the inner loop of a step.
void Dequantize(const WeightMatrix& matrix, uint32_t row_begin, uint32_t row_end, float* out);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WEIGHTS_WEIGHT_MATRIX_H_

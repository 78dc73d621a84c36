#ifndef TESSERA_ENGINE_KERNELS_MATMUL_MATMUL_H_
#define TESSERA_ENGINE_KERNELS_MATMUL_MATMUL_H_

#include <cstddef>
#include <cstdint>

#include "engine/kernels/common/cpu_level.h"

namespace tessera::engine {

enum class MatrixFormat : uint8_t {
  kF32,
  kBf16,
  kInt8,  // two's complement
  // Offset binary (stored = q + 8) in blocks of 32 columns: byte j of a block holds column j in its
  // low and column j + 16 in its high nibble, so that one shift and mask give two vectors of
  // neighbours. cols % 32 == 0, group_size % 32 == 0.
  kInt4,
};

// A matrix as the kernels read it. A view; row r begins at data + r * row_bytes.
//   scales [rows, cols / group_size] float32, for the integer formats; element (r, c) is
//   q(r, c) * scales[r, c / group_size]. group_size divides cols.
struct PackedMatrix {
  MatrixFormat format = MatrixFormat::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  const std::byte* data = nullptr;
  size_t row_bytes = 0;
  const float* scales = nullptr;
  uint32_t group_size = 0;

  uint32_t groups() const { return group_size == 0 ? 0 : cols / group_size; }
  size_t bytes() const { return rows * (row_bytes + groups() * sizeof(float)); }
};

// Bytes of one row of `cols` elements.
size_t PackedRowBytes(MatrixFormat format, uint32_t cols);
// Writes q (or the value itself) of one row; scales are the caller's. Used when weights are loaded.
void PackInt8Row(const int8_t* q, uint32_t cols, std::byte* out);
void PackInt4Row(const int8_t* q, uint32_t cols, std::byte* out);  // q in [-8, 7]
void PackF32Row(const float* values, uint32_t cols, std::byte* out);
void PackBf16Row(const float* values, uint32_t cols, std::byte* out);  // exact for bf16 values

// Row r as float32, scales applied: for embeddings. The plain loop at every level.
void UnpackRow(const PackedMatrix& w, uint32_t row, float* out);

// Rows are worked on in blocks of this many; ranges of threads should begin at multiples.
inline constexpr uint32_t kMatMulRowBlock = 4;
// Floats of scratch that one call needs.
inline size_t MatMulScratchFloats(uint32_t cols) { return size_t{kMatMulRowBlock} * cols; }

// y[t, r] (+)= sum_c w(r, c) * x[t, c]   for r in [row_begin, row_end), t in [0, tokens)
//   x: [tokens, cols], rows x_stride floats apart.   y: [tokens, w.rows], rows y_stride apart.
//   scratch: MatMulScratchFloats(w.cols) floats of the calling thread's own.
// `add` adds to y instead of setting it. Any alignment; x and y must not overlap.
// A row's result depends on its own token alone, never on how many tokens there are, up to the
// order of additions: one token and many use different orders.
// Cost: reads the rows once; for one token it is bound by that, for many by arithmetic.
struct MatMulArgs {
  const float* x = nullptr;
  size_t x_stride = 0;
  uint32_t tokens = 0;
  float* y = nullptr;
  size_t y_stride = 0;
  bool add = false;
  float* scratch = nullptr;
};
void MatMul(CpuLevel level, const PackedMatrix& w, uint32_t row_begin, uint32_t row_end,
            const MatMulArgs& args);

namespace internal {
void MatMulReference(const PackedMatrix& w, uint32_t row_begin, uint32_t row_end,
                     const MatMulArgs& args);
void MatMulAvx2(const PackedMatrix& w, uint32_t row_begin, uint32_t row_end,
                const MatMulArgs& args);
}  // namespace internal

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_KERNELS_MATMUL_MATMUL_H_

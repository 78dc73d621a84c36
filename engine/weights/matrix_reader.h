#ifndef TESSERA_ENGINE_WEIGHTS_MATRIX_READER_H_
#define TESSERA_ENGINE_WEIGHTS_MATRIX_READER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/weights/quantization_config.h"
#include "engine/weights/tensor_table.h"
#include "engine/weights/weight_matrix.h"

namespace tessera::engine {

// Finds the tensors of one module in a table, checks their types and shapes against what the
// configuration says, and describes them as a WeightMatrix. Marks them as used. Borrows table and
// configuration; owns copies of tensors that a file holds at an unaligned place (rare).
class MatrixReader {
 public:
  MatrixReader(TensorTable& table, const QuantizationConfig& quantization)
      : table_(table), quantization_(quantization) {}

  // The Linear at `path`, [rows, cols]. Errors name the tensor.
  absl::StatusOr<WeightMatrix> Matrix(const std::string& path, uint32_t rows, uint32_t cols,
                                      ModuleClass kind);
  // Experts fused into one float tensor [experts, rows, cols], one view an expert.
  absl::StatusOr<std::vector<WeightMatrix>> FusedExperts(const std::string& name, uint32_t experts,
                                                         uint32_t rows, uint32_t cols);
  // A float tensor of one of these shapes.
  absl::StatusOr<const StoredTensor*> Floats(const std::string& name,
                                             std::vector<std::vector<uint64_t>> shapes);

  std::deque<std::vector<std::byte>> TakeCopies() { return std::move(copies_); }

 private:
  // A tensor of a given type and shape; `hint` is appended to the error when it is missing.
  absl::StatusOr<const StoredTensor*> Take(const std::string& name,
                                           std::initializer_list<DType> dtypes,
                                           const std::vector<std::vector<uint64_t>>& shapes,
                                           std::string_view hint);
  absl::StatusOr<float> TakeScalar(const std::string& name, std::string_view hint);
  absl::Status ReadDense(const std::string& path, WeightMatrix& out);
  absl::Status ReadPacked(const std::string& path, const ModuleFormat& format, WeightMatrix& out);
  absl::Status ReadIntPlain(const std::string& path, const ModuleFormat& format, WeightMatrix& out);
  absl::Status ReadFp8(const std::string& path, const ModuleFormat& format, WeightMatrix& out);
  // The scale of a weight that is stored plainly: one for the tensor, or [rows, groups].
  absl::Status ReadScale(const std::string& path, const ModuleFormat& format, uint64_t groups,
                         uint32_t group_size, std::string_view hint, WeightMatrix& out);
  absl::Status ReadNvfp4(const std::string& path, const ModuleFormat& format, WeightMatrix& out);
  const std::byte* Aligned(const StoredTensor& tensor);
  std::string MissingHint(const std::string& path, const ModuleFormat& format) const;

  TensorTable& table_;
  const QuantizationConfig& quantization_;
  std::deque<std::vector<std::byte>> copies_;
};

// Reads a tensor of F32, BF16 or F16 as float32.
std::vector<float> ToFloats(const StoredTensor& tensor);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WEIGHTS_MATRIX_READER_H_

#ifndef TESSERA_ENGINE_WEIGHTS_SAFETENSORS_FILE_H_
#define TESSERA_ENGINE_WEIGHTS_SAFETENSORS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// One .safetensors file: eight bytes of header length, a JSON header, then the tensors end to end.

namespace tessera::engine {

inline constexpr uint64_t kHeaderBytesMax = uint64_t{100} << 20;  // the limit of the format
inline constexpr size_t kTensorsMax = size_t{1} << 21;            // of one file
inline constexpr size_t kTensorNameBytesMax = 1024;
inline constexpr size_t kTensorRankMax = 8;

enum class DType : uint8_t {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kF16,
  kBf16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
  kFp8E4m3,
  kFp8E5m2,
};
// As the format writes it: "BF16".
std::string_view DTypeName(DType dtype);
uint32_t DTypeBytes(DType dtype);

// A tensor in a file. `data` is null where only a header was read.
struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> shape;
  uint64_t begin = 0;  // offset into the data part
  uint64_t bytes = 0;
  const std::byte* data = nullptr;
};
// "BF16 [3, 4]".
std::string TypeAndShape(const StoredTensor& tensor);

// Reads the header text and checks that the tensors fill `data_bytes` exactly: known types, sizes
// that fit the shapes, no overlap, gap or rest, no name twice. Tensors come back in file order.
// `file` names the file in errors. Errors: kInvalidArgument names the tensor.
absl::StatusOr<std::vector<StoredTensor>> ParseSafetensorsHeader(std::string_view header,
                                                                 uint64_t data_bytes,
                                                                 std::string_view file);

// A mapped file. Tensor data lies inside the mapping, which ends with the object; every range was
// checked against the size that the file had when it was opened.
class SafetensorsFile {
 public:
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  std::span<const StoredTensor> tensors() const { return tensors_; }

 private:
  SafetensorsFile() = default;
  void* map_ = nullptr;
  size_t map_bytes_ = 0;
  std::vector<StoredTensor> tensors_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WEIGHTS_SAFETENSORS_FILE_H_

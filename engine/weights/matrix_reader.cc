#include "engine/weights/matrix_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/core/check.h"
#include "engine/weights/concat.h"

namespace tessera::engine {
namespace {

constexpr std::initializer_list<DType> kFloats = {DType::kBf16, DType::kF32, DType::kF16};

WeightFormat FloatFormat(DType dtype) {
  return dtype == DType::kF32   ? WeightFormat::kF32
         : dtype == DType::kF16 ? WeightFormat::kF16
                                : WeightFormat::kBf16;
}

ScaleFormat FloatScale(DType dtype) {
  return dtype == DType::kF32   ? ScaleFormat::kF32
         : dtype == DType::kF16 ? ScaleFormat::kF16
                                : ScaleFormat::kBf16;
}

float FloatAt(const StoredTensor& tensor, uint64_t index) {
  const std::byte* at = tensor.data + index * DTypeBytes(tensor.dtype);
  if (tensor.dtype == DType::kF32) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return tensor.dtype == DType::kF16 ? F16ToFloat(bits) : Bf16ToFloat(bits);
}

std::string ShapeText(const std::vector<uint64_t>& shape) {
  return Concat("[", Join(shape, ", "), "]");
}

// The number of groups of a row, or an error when the group size does not divide it.
absl::StatusOr<uint64_t> Groups(const std::string& path, const ModuleFormat& format,
                                uint32_t cols) {
  if (format.group_size == 0) return 1;
  if (cols % format.group_size != 0) {
    return absl::InvalidArgumentError(Concat("tensor \"", path, ".weight_scale\": group_size ",
                                             format.group_size, " of ", format.source,
                                             " does not divide the ", cols, " columns"));
  }
  return cols / format.group_size;
}

}  // namespace

std::vector<float> ToFloats(const StoredTensor& tensor) {
  std::vector<float> out(tensor.bytes / DTypeBytes(tensor.dtype));
  for (size_t i = 0; i < out.size(); ++i) out[i] = FloatAt(tensor, i);
  return out;
}

absl::StatusOr<const StoredTensor*> MatrixReader::Take(
    const std::string& name, std::initializer_list<DType> dtypes,
    const std::vector<std::vector<uint64_t>>& shapes, std::string_view hint) {
  const StoredTensor* tensor = table_.Use(name);
  if (tensor == nullptr) {
    return absl::InvalidArgumentError(Concat("tensor \"", name, "\" is missing", hint));
  }
  const bool type_fits = std::find(dtypes.begin(), dtypes.end(), tensor->dtype) != dtypes.end();
  const bool shape_fits = std::find(shapes.begin(), shapes.end(), tensor->shape) != shapes.end();
  if (type_fits && shape_fits) return tensor;
  std::vector<std::string_view> types;
  for (DType dtype : dtypes) types.push_back(DTypeName(dtype));
  std::vector<std::string> forms;
  for (const auto& shape : shapes) forms.push_back(ShapeText(shape));
  return absl::InvalidArgumentError(Concat("tensor \"", name, "\" is ", TypeAndShape(*tensor),
                                           "; config.json makes it ", Join(types, " or "), " ",
                                           Join(forms, " or ")));
}

absl::StatusOr<float> MatrixReader::TakeScalar(const std::string& name, std::string_view hint) {
  auto tensor = Take(name, {DType::kF32, DType::kBf16, DType::kF16}, {{}, {1}, {1, 1}}, hint);
  if (!tensor.ok()) return tensor.status();
  return FloatAt(**tensor, 0);
}

const std::byte* MatrixReader::Aligned(const StoredTensor& tensor) {
  if (reinterpret_cast<uintptr_t>(tensor.data) % DTypeBytes(tensor.dtype) == 0) return tensor.data;
  copies_.emplace_back(tensor.data, tensor.data + tensor.bytes);
  return copies_.back().data();
}

std::string MatrixReader::MissingHint(const std::string& path, const ModuleFormat& format) const {
  if (format.layout == ModuleLayout::kDense) {
    if (table_.Find(path + ".weight_packed") == nullptr) return "; the checkpoint is incomplete";
    return Concat(", but \"", path, ".weight_packed\" is there: quantization_config has no group ",
                  "whose targets name this module, or ignores it");
  }
  return Concat("; ", format.source, " of quantization_config says that the module is ",
                ModuleLayoutName(format.layout));
}

absl::StatusOr<const StoredTensor*> MatrixReader::Floats(
    const std::string& name, std::vector<std::vector<uint64_t>> shapes) {
  return Take(name, kFloats, shapes, "; the checkpoint is incomplete");
}

absl::StatusOr<WeightMatrix> MatrixReader::Matrix(const std::string& path, uint32_t rows,
                                                  uint32_t cols, ModuleClass kind) {
  auto format = quantization_.FormatOf(path, kind);
  if (!format.ok()) return format.status();
  WeightMatrix out;
  out.rows = rows;
  out.cols = cols;
  absl::Status status;
  switch (format->layout) {
    case ModuleLayout::kDense:
      status = ReadDense(path, out);
      break;
    case ModuleLayout::kIntPacked:
      status = ReadPacked(path, *format, out);
      break;
    case ModuleLayout::kIntPlain:
      status = ReadIntPlain(path, *format, out);
      break;
    case ModuleLayout::kFp8:
      status = ReadFp8(path, *format, out);
      break;
    case ModuleLayout::kNvfp4Packed:
    case ModuleLayout::kNvfp4ModelOpt:
      status = ReadNvfp4(path, *format, out);
      break;
  }
  if (!status.ok()) return status;
  return out;
}

absl::Status MatrixReader::ReadDense(const std::string& path, WeightMatrix& out) {
  auto weight = Take(path + ".weight", kFloats, {{out.rows, out.cols}}, MissingHint(path, {}));
  if (!weight.ok()) return weight.status();
  out.format = FloatFormat((*weight)->dtype);
  out.row_bytes = uint64_t{out.cols} * DTypeBytes((*weight)->dtype);
  out.data = Aligned(**weight);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WeightMatrix>> MatrixReader::FusedExperts(const std::string& name,
                                                                     uint32_t experts,
                                                                     uint32_t rows, uint32_t cols) {
  auto fused = Take(name, kFloats, {{experts, rows, cols}}, "");
  if (!fused.ok()) return fused.status();
  const std::byte* data = Aligned(**fused);
  std::vector<WeightMatrix> out(experts);
  for (WeightMatrix& matrix : out) {
    matrix.format = FloatFormat((*fused)->dtype);
    matrix.rows = rows;
    matrix.cols = cols;
    matrix.row_bytes = uint64_t{cols} * DTypeBytes((*fused)->dtype);
    matrix.data = data;
    data += rows * matrix.row_bytes;
  }
  return out;
}

absl::Status MatrixReader::ReadPacked(const std::string& path, const ModuleFormat& format,
                                      WeightMatrix& out) {
  const std::string hint = MissingHint(path, format);
  const uint64_t bits = static_cast<uint64_t>(format.bits);
  const uint64_t words = (out.cols * bits + 31) / 32;
  auto groups = Groups(path, format, out.cols);
  if (!groups.ok()) return groups.status();
  auto packed = Take(path + ".weight_packed", {DType::kI32}, {{out.rows, words}}, hint);
  if (!packed.ok()) return packed.status();
  std::vector<std::vector<uint64_t>> scale_shapes = {{out.rows, *groups}};
  if (*groups == 1) scale_shapes.push_back({out.rows});
  auto scale = Take(path + ".weight_scale", kFloats, scale_shapes, hint);
  if (!scale.ok()) return scale.status();
  auto shape = Take(path + ".weight_shape", {DType::kI64, DType::kI32}, {{2}}, hint);
  if (!shape.ok()) return shape.status();
  int64_t extents[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    std::memcpy(&extents[i], (*shape)->data + i * DTypeBytes((*shape)->dtype),
                DTypeBytes((*shape)->dtype));
  }
  if (extents[0] != out.rows || extents[1] != out.cols) {
    return absl::InvalidArgumentError(
        Concat("tensor \"", path, ".weight_shape\" says [", extents[0], ", ", extents[1],
               "]; config.json makes it [", out.rows, ", ", out.cols, "]"));
  }
  if (table_.Find(path + ".weight_g_idx") != nullptr) {
    return absl::UnimplementedError(Concat("tensor \"", path, ".weight_g_idx\": columns in ",
                                           "activation order are not supported; requantise ",
                                           "without actorder"));
  }
  if (!format.symmetric) {
    auto zeros = Take(path + ".weight_zero_point", {DType::kI32},
                      {{(out.rows * bits + 31) / 32, *groups}}, hint);
    if (!zeros.ok()) return zeros.status();
    out.zero_points = reinterpret_cast<const uint32_t*>(Aligned(**zeros));
  } else if (table_.Find(path + ".weight_zero_point") != nullptr) {
    return absl::InvalidArgumentError(Concat("tensor \"", path, ".weight_zero_point\" is there, ",
                                             "but ", format.source, " says symmetric"));
  }
  out.format = bits == 4 ? WeightFormat::kInt4 : WeightFormat::kInt8;
  out.offset_binary = true;
  out.data = Aligned(**packed);
  out.row_bytes = words * 4;
  out.scale_format = FloatScale((*scale)->dtype);
  out.scales = Aligned(**scale);
  out.group_size = format.group_size == 0 ? out.cols : format.group_size;
  return absl::OkStatus();
}

absl::Status MatrixReader::ReadIntPlain(const std::string& path, const ModuleFormat& format,
                                        WeightMatrix& out) {
  const std::string hint = MissingHint(path, format);
  auto groups = Groups(path, format, out.cols);
  if (!groups.ok()) return groups.status();
  auto weight = Take(path + ".weight", {DType::kI8}, {{out.rows, out.cols}}, hint);
  if (!weight.ok()) return weight.status();
  out.format = WeightFormat::kInt8;
  out.data = (*weight)->data;
  out.row_bytes = out.cols;
  const uint32_t group_size = format.group_size == 0 ? out.cols : format.group_size;
  return ReadScale(path, format, *groups, group_size, hint, out);
}

absl::Status MatrixReader::ReadScale(const std::string& path, const ModuleFormat& format,
                                     uint64_t groups, uint32_t group_size, std::string_view hint,
                                     WeightMatrix& out) {
  if (format.per_tensor) {
    auto scale = TakeScalar(path + ".weight_scale", hint);
    if (!scale.ok()) return scale.status();
    out.global_scale = *scale;
    return absl::OkStatus();
  }
  std::vector<std::vector<uint64_t>> shapes = {{out.rows, groups}};
  if (groups == 1) shapes.push_back({out.rows});
  auto scale = Take(path + ".weight_scale", kFloats, shapes, hint);
  if (!scale.ok()) return scale.status();
  out.scale_format = FloatScale((*scale)->dtype);
  out.scales = Aligned(**scale);
  out.group_size = group_size;
  return absl::OkStatus();
}

absl::Status MatrixReader::ReadFp8(const std::string& path, const ModuleFormat& format,
                                   WeightMatrix& out) {
  const std::string hint = MissingHint(path, format);
  auto weight = Take(path + ".weight", {DType::kFp8E4m3}, {{out.rows, out.cols}}, hint);
  if (!weight.ok()) return weight.status();
  out.format = WeightFormat::kFp8E4m3;
  out.data = (*weight)->data;
  out.row_bytes = out.cols;
  return ReadScale(path, format, /*groups=*/1, out.cols, hint, out);
}

absl::Status MatrixReader::ReadNvfp4(const std::string& path, const ModuleFormat& format,
                                     WeightMatrix& out) {
  const bool modelopt = format.layout == ModuleLayout::kNvfp4ModelOpt;
  const std::string hint = MissingHint(path, format);
  auto groups = Groups(path, format, out.cols);
  if (!groups.ok()) return groups.status();
  auto packed = Take(path + (modelopt ? ".weight" : ".weight_packed"), {DType::kU8},
                     {{out.rows, out.cols / 2}}, hint);
  if (!packed.ok()) return packed.status();
  auto scale = Take(path + ".weight_scale", {DType::kFp8E4m3}, {{out.rows, *groups}}, hint);
  if (!scale.ok()) return scale.status();
  auto global = TakeScalar(path + (modelopt ? ".weight_scale_2" : ".weight_global_scale"), hint);
  if (!global.ok()) return global.status();
  out.format = WeightFormat::kNvfp4;
  out.data = (*packed)->data;
  out.row_bytes = out.cols / 2;
  out.scale_format = ScaleFormat::kFp8E4m3;
  out.scales = (*scale)->data;
  out.group_size = format.group_size;
  // The two writers keep reciprocals of each other.
  out.global_scale = modelopt ? *global : 1.0f / *global;
  return absl::OkStatus();
}

}  // namespace tessera::engine

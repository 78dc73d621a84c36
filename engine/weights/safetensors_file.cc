#include "engine/weights/safetensors_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "engine/weights/concat.h"
#include "nlohmann/json.hpp"

namespace tessera::engine {
namespace {

struct DTypeFacts {
  std::string_view name;
  DType dtype;
  uint32_t bytes;
};

constexpr DTypeFacts kDTypes[] = {
    {"BOOL", DType::kBool, 1}, {"U8", DType::kU8, 1},           {"I8", DType::kI8, 1},
    {"U16", DType::kU16, 2},   {"I16", DType::kI16, 2},         {"F16", DType::kF16, 2},
    {"BF16", DType::kBf16, 2}, {"U32", DType::kU32, 4},         {"I32", DType::kI32, 4},
    {"F32", DType::kF32, 4},   {"U64", DType::kU64, 8},         {"I64", DType::kI64, 8},
    {"F64", DType::kF64, 8},   {"F8_E4M3", DType::kFp8E4m3, 1}, {"F8_E5M2", DType::kFp8E5m2, 1},
};

const DTypeFacts& FactsOf(DType dtype) {
  for (const DTypeFacts& facts : kDTypes) {
    if (facts.dtype == dtype) return facts;
  }
  return kDTypes[0];
}

// Collects tensors straight from the parser's events, so that a hostile header never becomes a
// tree: memory stays proportional to the tensors, and depth is checked as it grows.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(std::string_view file) : file_(file) {}

  const std::string& error() const { return error_; }
  std::vector<StoredTensor> TakeTensors() { return std::move(tensors_); }

  bool null() override { return Scalar("null"); }
  bool boolean(bool) override { return Scalar("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return Fail(Concat("has ", value, " in ", field_, ", where no negative number can be"));
  }
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t, const string_t& text) override {
    return Fail(
        Concat("has ", text, " in ", field_, "; must be whole numbers that fit 64 ", "bits"));
  }
  bool string(string_t& value) override;
  bool binary(binary_t&) override { return Scalar("binary"); }
  bool start_object(size_t) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override {
    in_array_ = false;
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& e) override {
    error_ = Concat(file_, ": header is not JSON at byte ", position, ": ", e.what());
    return false;
  }

 private:
  bool Fail(std::string_view what) {
    if (error_.empty()) error_ = Concat(file_, ": ", Where(), " ", what);
    return false;
  }
  std::string Where() const {
    if (depth_ == 0) return "header";
    return Concat("tensor \"", current_.name, "\"");
  }
  bool Scalar(std::string_view what) {
    if (in_metadata_) return Fail(Concat("has ", what, "; metadata must be strings"));
    return Fail(Concat("has ", what, " for ", field_.empty() ? std::string("its value") : field_));
  }
  bool Finish();

  std::string file_;
  std::string error_;
  std::vector<StoredTensor> tensors_;
  absl::flat_hash_set<std::string> names_;
  int depth_ = 0;
  bool in_metadata_ = false;
  bool in_array_ = false;
  // The tensor being read.
  StoredTensor current_;
  std::string field_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  std::vector<uint64_t> offsets_;
  bool has_offsets_ = false;
};

bool HeaderReader::number_unsigned(number_unsigned_t value) {
  if (!in_array_) return Scalar("a number");
  std::vector<uint64_t>& list = field_ == "shape" ? current_.shape : offsets_;
  if (list.size() >= kTensorRankMax) {
    return Fail(Concat("has more than ", kTensorRankMax, " numbers in ", field_));
  }
  list.push_back(value);
  return true;
}

bool HeaderReader::string(string_t& value) {
  if (in_metadata_ && depth_ == 2) return true;
  if (in_array_ || field_ != "dtype" || depth_ != 2) return Scalar("a string");
  for (const DTypeFacts& facts : kDTypes) {
    if (facts.name == value) {
      current_.dtype = facts.dtype;
      return true;
    }
  }
  return Fail(Concat("has dtype \"", value.substr(0, 40), "\", which is not known"));
}

bool HeaderReader::start_object(size_t) {
  if (depth_ >= 2 || in_array_) return Fail("has an object where none can be");
  if (++depth_ == 2 && !in_metadata_) {
    field_.clear();
    current_.shape.clear();
    offsets_.clear();
    has_dtype_ = has_shape_ = has_offsets_ = false;
  }
  return true;
}

bool HeaderReader::key(string_t& name) {
  if (depth_ == 1) {
    in_metadata_ = name == "__metadata__";
    current_.name = name.substr(0, kTensorNameBytesMax);
    field_.clear();
    if (name.size() > kTensorNameBytesMax) {
      return Fail(
          Concat("has a name of ", name.size(), " bytes; the limit is ", kTensorNameBytesMax));
    }
    if (!names_.insert(name).second) return Fail("is there twice");
    if (names_.size() > kTensorsMax) {
      return Fail(Concat("is one too many; the limit is ", kTensorsMax, " a file"));
    }
    return true;
  }
  if (in_metadata_) return true;
  field_ = name.substr(0, 40);
  bool* seen = name == "dtype"          ? &has_dtype_
               : name == "shape"        ? &has_shape_
               : name == "data_offsets" ? &has_offsets_
                                        : nullptr;
  if (seen == nullptr) return Fail(Concat("has an unknown field \"", field_, "\""));
  if (*seen) return Fail(Concat("has ", field_, " twice"));
  *seen = true;
  return true;
}

bool HeaderReader::start_array(size_t) {
  if (in_metadata_ || in_array_ || depth_ != 2 || (field_ != "shape" && field_ != "data_offsets")) {
    return Fail("has a list where none can be");
  }
  in_array_ = true;
  return true;
}

bool HeaderReader::end_object() {
  if (depth_ == 2 && !in_metadata_ && !Finish()) return false;
  if (depth_ == 2) in_metadata_ = false;
  --depth_;
  return true;
}

bool HeaderReader::Finish() {
  if (!has_dtype_ || !has_shape_ || !has_offsets_ || offsets_.size() != 2) {
    return Fail("must have dtype, shape and two data_offsets");
  }
  uint64_t bytes = DTypeBytes(current_.dtype);
  for (uint64_t extent : current_.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      return Fail(Concat("has shape [", Join(current_.shape, ", "), "], more than 2^64 bytes"));
    }
  }
  if (offsets_[0] > offsets_[1] || offsets_[1] - offsets_[0] != bytes) {
    return Fail(Concat("is ", TypeAndShape(current_), ", ", bytes,
                       " bytes, but its data_offsets are [", offsets_[0], ", ", offsets_[1], "]"));
  }
  current_.begin = offsets_[0];
  current_.bytes = bytes;
  tensors_.push_back(current_);
  return true;
}

std::string ErrnoText() { return std::strerror(errno); }

}  // namespace

std::string_view DTypeName(DType dtype) { return FactsOf(dtype).name; }
uint32_t DTypeBytes(DType dtype) { return FactsOf(dtype).bytes; }

std::string TypeAndShape(const StoredTensor& tensor) {
  return Concat(DTypeName(tensor.dtype), " [", Join(tensor.shape, ", "), "]");
}

absl::StatusOr<std::vector<StoredTensor>> ParseSafetensorsHeader(std::string_view header,
                                                                 uint64_t data_bytes,
                                                                 std::string_view file) {
  if (header.empty() || header[0] != '{') {
    return absl::InvalidArgumentError(Concat(file, ": header does not begin with {"));
  }
  HeaderReader reader(file);
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &reader)) {
    return absl::InvalidArgumentError(reader.error());
  }
  std::vector<StoredTensor> tensors = reader.TakeTensors();
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.bytes) < std::pair(b.begin, b.bytes);
  });
  uint64_t end = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const StoredTensor& tensor = tensors[i];
    const auto error = [&](std::string_view what) {
      return absl::InvalidArgumentError(Concat(file, ": tensor \"", tensor.name, "\" ", what));
    };
    if (tensor.begin < end) {
      return error(
          Concat("overlaps tensor \"", tensors[i - 1].name, "\" at offset ", tensor.begin));
    }
    if (tensor.begin > end) {
      return error(Concat("begins at offset ", tensor.begin, ", leaving a gap after ", end));
    }
    if (tensor.begin > data_bytes || tensor.bytes > data_bytes - tensor.begin) {
      return error(Concat("needs bytes ", tensor.begin, " to ", tensor.begin + tensor.bytes,
                          ", but the file holds only ", data_bytes,
                          " bytes of data: it is truncated; fetch it again"));
    }
    end = tensor.begin + tensor.bytes;
  }
  if (end != data_bytes) {
    return absl::InvalidArgumentError(
        Concat(file, ": ", data_bytes - end, " bytes after the last tensor",
               tensors.empty() ? std::string() : Concat(" \"", tensors.back().name, "\""),
               " belong to nothing; the file is damaged, fetch it again"));
  }
  return tensors;
}

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::NotFoundError(Concat(path, ": cannot be opened: ", ErrnoText()));
  }
  const auto close_fd = absl::MakeCleanup([fd] { ::close(fd); });
  struct stat facts;
  if (::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(Concat(path, ": not a regular file"));
  }
  const uint64_t file_bytes = static_cast<uint64_t>(facts.st_size);
  if (file_bytes < 8) {
    return absl::InvalidArgumentError(Concat(
        path, ": is ", file_bytes, " bytes, too short for a safetensors file; fetch it again"));
  }
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile);
  void* map = ::mmap(nullptr, file_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (map == MAP_FAILED) {
    return absl::ResourceExhaustedError(Concat(path, ": cannot be mapped: ", ErrnoText()));
  }
  file->map_ = map;
  file->map_bytes_ = file_bytes;
  const auto* bytes = static_cast<const std::byte*>(map);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes, 8);  // little-endian, as every machine we run on
  if (header_bytes > kHeaderBytesMax) {
    return absl::InvalidArgumentError(Concat(path, ": header says it is ", header_bytes,
                                             " bytes; the limit is ", kHeaderBytesMax));
  }
  if (header_bytes > file_bytes - 8) {
    return absl::InvalidArgumentError(Concat(path, ": header says it is ", header_bytes,
                                             " bytes, but the file has only ", file_bytes - 8,
                                             " after the length: it is truncated; fetch it again"));
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes + 8), header_bytes);
  auto tensors = ParseSafetensorsHeader(header, file_bytes - 8 - header_bytes, path);
  if (!tensors.ok()) return tensors.status();
  file->tensors_ = *std::move(tensors);
  for (StoredTensor& tensor : file->tensors_) {
    tensor.data = bytes + 8 + header_bytes + tensor.begin;
  }
  return file;
}

SafetensorsFile::~SafetensorsFile() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
}

}  // namespace tessera::engine

#ifndef TESSERA_ENGINE_WEIGHTS_QUANTIZATION_CONFIG_H_
#define TESSERA_ENGINE_WEIGHTS_QUANTIZATION_CONFIG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/weights/weight_matrix.h"

// Which module of a checkpoint is stored in which format: compressed-tensors and ModelOpt.

namespace tessera::engine {

inline constexpr size_t kPatternBytesMax = 1024;  // one `re:` entry or wildcard
inline constexpr size_t kPatternsMax = 4096;      // of all groups and ignore lists
inline constexpr size_t kQuantizedLayersMax = 1u << 20;
inline constexpr uint32_t kPatternStepsMax = 100000;  // work of matching one pattern once

// How the tensors of a module look in the file.
enum class ModuleLayout : uint8_t {
  kDense,          // X.weight in a float type
  kIntPacked,      // compressed-tensors pack-quantized
  kIntPlain,       // compressed-tensors int-quantized: X.weight int8
  kFp8,            // X.weight E4M3, X.weight_scale
  kNvfp4Packed,    // compressed-tensors nvfp4-pack-quantized
  kNvfp4ModelOpt,  // X.weight U8, X.weight_scale, X.weight_scale_2
};
std::string_view ModuleLayoutName(ModuleLayout layout);

struct ModuleFormat {
  ModuleLayout layout = ModuleLayout::kDense;
  int bits = 16;
  uint32_t group_size = 0;  // columns of a scale; 0: one a row, or one for all
  bool symmetric = true;
  bool per_tensor = false;  // one scale in all
  std::string source;       // where the configuration says so: "config_groups.group_0"
};

// What "Linear" in a target list means: routers and embeddings are not.
enum class ModuleClass : uint8_t { kLinear, kRouter, kEmbedding };

// Immutable; any thread may ask.
class QuantizationConfig {
 public:
  // `config_json` is the text of config.json; `hf_quant_json` that of hf_quant_config.json, or
  // empty, and is used when config.json says nothing. Unknown methods are kUnimplemented by name.
  static absl::StatusOr<std::unique_ptr<QuantizationConfig>> Parse(std::string_view config_json,
                                                                   std::string_view hf_quant_json);
  // The same from the two files of a model directory.
  static absl::StatusOr<std::unique_ptr<QuantizationConfig>> Load(const std::string& model_dir);
  virtual ~QuantizationConfig() = default;

  // The format of the module at `path` ("backbone.layers.3.mixer.q_proj"). A leading "backbone." or
  // "model." may differ from what the configuration writes. Errors: a pattern that takes too many
  // steps, a format that is not supported.
  virtual absl::StatusOr<ModuleFormat> FormatOf(std::string_view path, ModuleClass kind) const = 0;

  // "none", "compressed-tensors", "modelopt".
  virtual std::string_view method() const = 0;
};

// Bytes of a matrix [rows, cols] in `format` with its scales; dense: 2 bytes an element, scales of
// integers 2 bytes.
uint64_t StoredMatrixBytes(const ModuleFormat& format, uint64_t rows, uint64_t cols);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WEIGHTS_QUANTIZATION_CONFIG_H_

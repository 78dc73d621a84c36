#include "engine/weights/quantization_config.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/weights/concat.h"
#include "engine/weights/json_text.h"
#include "engine/weights/model_config.h"
#include "engine/weights/name_pattern.h"

namespace tessera::engine {
namespace {

using nlohmann::json;

constexpr std::string_view kPrefixes[] = {"backbone.", "model."};

// The path without its prefix; names are compared that way.
std::string_view Bare(std::string_view path) {
  for (std::string_view prefix : kPrefixes) {
    if (path.substr(0, prefix.size()) == prefix) return path.substr(prefix.size());
  }
  return path;
}

// Every spelling of a path that a pattern may mean.
std::vector<std::string> Spellings(std::string_view path) {
  std::vector<std::string> all = {std::string(path)};
  const std::string_view bare = Bare(path);
  if (bare.size() == path.size()) return all;
  for (std::string_view prefix : kPrefixes) {
    std::string other = Concat(prefix, bare);
    if (other != path) all.push_back(std::move(other));
  }
  return all;
}

// A list of module names, regular expressions ("re:"), wildcards and class names.
class NameList {
 public:
  // How well a path is met; the best match decides between groups.
  enum Rank : uint8_t { kNone, kClass, kPattern, kExact };

  absl::Status Add(const json& list, const std::string& where) {
    if (list.is_null()) return absl::OkStatus();
    if (!list.is_array()) return absl::InvalidArgumentError(Concat(where, ": must be a list"));
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string at = Concat(where, "[", i, "]");
      if (!list[i].is_string()) {
        return absl::InvalidArgumentError(Concat(at, ": must be a string"));
      }
      if (absl::Status s = AddOne(list[i].get_ref<const std::string&>(), at); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Rank> Match(std::string_view path, ModuleClass kind) const {
    if (exact_.count(std::string(Bare(path))) > 0) return kExact;
    if (!regexes_.empty() || !wildcards_.empty()) {
      for (const std::string& spelling : Spellings(path)) {
        for (const NameRegex& regex : regexes_) {
          auto matches = regex.Matches(spelling);
          if (!matches.ok()) return matches.status();
          if (*matches) return kPattern;
        }
        for (const std::string& wildcard : wildcards_) {
          if (WildcardMatches(wildcard, spelling)) return kPattern;
        }
      }
    }
    return linear_ && kind == ModuleClass::kLinear ? kClass : kNone;
  }

 private:
  absl::Status AddOne(const std::string& entry, const std::string& at) {
    if (entry == "Linear") {
      linear_ = true;
      return absl::OkStatus();
    }
    const bool is_regex = entry.rfind("re:", 0) == 0;
    if (!is_regex && entry.find_first_of("*?") == std::string::npos) {
      exact_.insert(std::string(Bare(entry)));
      return absl::OkStatus();
    }
    if (regexes_.size() + wildcards_.size() >= kPatternsMax || entry.size() > kPatternBytesMax) {
      return absl::InvalidArgumentError(Concat(at, ": at most ", kPatternsMax,
                                               " patterns of at most ", kPatternBytesMax,
                                               " bytes are read; name modules exactly"));
    }
    if (!is_regex) {
      wildcards_.push_back(entry);
      return absl::OkStatus();
    }
    auto regex = NameRegex::Compile(std::string_view(entry).substr(3), at);
    if (!regex.ok()) return regex.status();
    regexes_.push_back(*std::move(regex));
    return absl::OkStatus();
  }

  std::set<std::string> exact_;
  std::vector<NameRegex> regexes_;
  std::vector<std::string> wildcards_;
  bool linear_ = false;
};

class Unquantized final : public QuantizationConfig {
 public:
  absl::StatusOr<ModuleFormat> FormatOf(std::string_view, ModuleClass) const override {
    return ModuleFormat{};
  }
  std::string_view method() const override { return "none"; }
};

absl::StatusOr<ModuleFormat> ReadWeights(const json& weights, const std::string& format,
                                         const std::string& where) {
  JsonFields fields(weights, where);
  ModuleFormat out;
  const std::string type = fields.String({"type"}, "int");
  const std::string strategy = fields.String({"strategy"}, "");
  out.bits = static_cast<int>(fields.Uint({"num_bits"}, 1, 16));
  out.symmetric = fields.Bool({"symmetric"}, true);
  const json* group = fields.Find({"group_size"});
  const bool channel = group != nullptr && NumberOf(*group) == -1.0;
  out.group_size = channel ? 0 : fields.Uint({"group_size"}, 1, kWidthMax, 0);
  if (!fields.status().ok()) return fields.status();
  const json* order = fields.Find({"actorder"});
  if (order != nullptr && *order != false && *order != "static" && *order != "weight") {
    return absl::UnimplementedError(Concat(where, "actorder: is ", Excerpt(*order),
                                           "; supported: null, \"static\", \"weight\""));
  }
  const auto unsupported = [&](std::string_view what) {
    return absl::UnimplementedError(Concat(where, "format \"", format, "\" with type \"", type,
                                           "\", ", out.bits, " bits, ", "strategy \"", strategy,
                                           "\", group_size ", out.group_size, ": ", what));
  };
  const bool grouped = strategy == "group" || strategy == "tensor_group";
  if (grouped != (out.group_size != 0) && !(strategy.empty() && channel)) {
    if (grouped) return unsupported("strategy group needs a group_size");
    out.group_size = 0;
  }
  if (type == "int") {
    if (strategy != "group" && strategy != "channel" && strategy != "tensor" && !strategy.empty()) {
      return unsupported("strategies supported for int: group, channel, tensor");
    }
    out.per_tensor = strategy == "tensor";
    if (format == "pack-quantized" && (out.bits == 4 || out.bits == 8) && !out.per_tensor) {
      out.layout = ModuleLayout::kIntPacked;
      return out;
    }
    if ((format == "int-quantized" || format == "naive-quantized") && out.bits == 8) {
      if (!out.symmetric) return unsupported("asymmetric weights are supported when packed only");
      out.layout = ModuleLayout::kIntPlain;
      return out;
    }
    return unsupported("supported: pack-quantized with 4 or 8 bits, int-quantized with 8");
  }
  if (type == "float" && out.bits == 8 &&
      (format == "float-quantized" || format == "naive-quantized") &&
      (strategy == "tensor" || strategy == "channel")) {
    out.layout = ModuleLayout::kFp8;
    out.per_tensor = strategy == "tensor";
    return out;
  }
  if (type == "float" && out.bits == 4 && format == "nvfp4-pack-quantized" &&
      out.group_size == 16) {
    out.layout = ModuleLayout::kNvfp4Packed;
    return out;
  }
  return unsupported(
      "supported for float: float-quantized (8 bits, tensor or channel), nvfp4-pack-quantized "
      "(4 bits, group 16)");
}

class CompressedTensors final : public QuantizationConfig {
 public:
  static absl::StatusOr<std::unique_ptr<QuantizationConfig>> Read(const json& root) {
    auto out = std::make_unique<CompressedTensors>();
    const std::string where = "config.json: quantization_config.";
    JsonFields fields(root, where);
    const std::string format = fields.String({"format"}, "");
    if (!fields.status().ok()) return fields.status();
    if (const json* sparsity = fields.Find({"sparsity_config"}); sparsity && !sparsity->empty()) {
      JsonFields inner(*sparsity, where + "sparsity_config.");
      const std::string kind = inner.String({"format"}, "dense");
      if (kind != "dense") {
        return absl::UnimplementedError(
            Concat(where, "sparsity_config.format: is \"", kind, "\"; supported: dense"));
      }
    }
    const json* groups = fields.Find({"config_groups"});
    if (groups == nullptr || !groups->is_object()) {
      return absl::InvalidArgumentError(
          Concat(where, "config_groups: is missing or not an object"));
    }
    for (const auto& [name, group] : groups->items()) {
      const std::string at = Concat(where, "config_groups.", name, ".");
      if (!group.is_object()) return absl::InvalidArgumentError(Concat(at, " must be an object"));
      Group read;
      JsonFields inner(group, at);
      const std::string group_format = inner.String({"format"}, format);
      if (const json* weights = inner.Find({"weights"})) {
        auto module = ReadWeights(*weights, group_format, Concat(at, "weights."));
        if (!module.ok()) return module.status();
        read.format = *module;
      }
      read.format.source = Concat("config_groups.", name);
      const json* targets = inner.Find({"targets"});
      if (targets == nullptr) return absl::InvalidArgumentError(Concat(at, "targets: is missing"));
      if (absl::Status s = read.targets.Add(*targets, at + "targets"); !s.ok()) return s;
      out->groups_.push_back(std::move(read));
    }
    if (const json* ignore = fields.Find({"ignore"})) {
      if (absl::Status s = out->ignore_.Add(*ignore, where + "ignore"); !s.ok()) return s;
    }
    return std::unique_ptr<QuantizationConfig>(std::move(out));
  }

  absl::StatusOr<ModuleFormat> FormatOf(std::string_view path, ModuleClass kind) const override {
    auto ignored = ignore_.Match(path, kind);
    if (!ignored.ok()) return ignored.status();
    ModuleFormat best;
    if (*ignored != NameList::kNone) return best;
    NameList::Rank best_rank = NameList::kNone;
    for (const Group& group : groups_) {
      auto rank = group.targets.Match(path, kind);
      if (!rank.ok()) return rank.status();
      if (*rank > best_rank) {
        best_rank = *rank;
        best = group.format;
      }
    }
    return best;
  }
  std::string_view method() const override { return "compressed-tensors"; }

 private:
  struct Group {
    NameList targets;
    ModuleFormat format;
  };
  std::vector<Group> groups_;
  NameList ignore_;
};

absl::StatusOr<ModuleFormat> ModelOptFormat(const std::string& algorithm, uint32_t group_size,
                                            const std::string& where) {
  ModuleFormat format;
  format.source = where;
  if (algorithm == "FP8") {
    format.layout = ModuleLayout::kFp8;
    format.bits = 8;
    format.per_tensor = true;
    return format;
  }
  if (algorithm == "NVFP4" || algorithm == "W4A16_NVFP4") {
    if (group_size != 16) {
      return absl::UnimplementedError(
          Concat(where, ": NVFP4 with group_size ", group_size, "; supported: 16"));
    }
    format.layout = ModuleLayout::kNvfp4ModelOpt;
    format.bits = 4;
    format.group_size = 16;
    return format;
  }
  return absl::UnimplementedError(Concat(where, ": quant_algo is \"", algorithm,
                                         "\"; supported: FP8, NVFP4, W4A16_NVFP4, and ",
                                         "MIXED_PRECISION of these"));
}

class ModelOpt final : public QuantizationConfig {
 public:
  static absl::StatusOr<std::unique_ptr<QuantizationConfig>> Read(const json& root,
                                                                  const std::string& where) {
    auto out = std::make_unique<ModelOpt>();
    JsonFields fields(root, where);
    const std::string algorithm = fields.String({"quant_algo"}, "");
    const uint32_t group_size = fields.Uint({"group_size"}, 1, kWidthMax, 16);
    if (!fields.status().ok()) return fields.status();
    for (std::string_view name : {"exclude_modules", "ignore"}) {
      if (const json* list = fields.Find({name})) {
        if (absl::Status s = out->exclude_.Add(*list, Concat(where, name)); !s.ok()) return s;
      }
    }
    const json* table = fields.Find({"quantized_layers"});
    if (table == nullptr || table->empty()) {
      auto uniform = ModelOptFormat(algorithm, group_size, where + "quant_algo");
      if (!uniform.ok()) return uniform.status();
      out->uniform_ = *uniform;
      return std::unique_ptr<QuantizationConfig>(std::move(out));
    }
    if (!table->is_object() || table->size() > kQuantizedLayersMax) {
      return absl::InvalidArgumentError(Concat(where, "quantized_layers: must be an object of at ",
                                               "most ", kQuantizedLayersMax, " modules"));
    }
    for (const auto& [path, entry] : table->items()) {
      const std::string at = Concat(where, "quantized_layers[\"", path, "\"]");
      if (!entry.is_object()) return absl::InvalidArgumentError(Concat(at, ": must be an object"));
      JsonFields inner(entry, at + ".");
      const std::string kind = inner.String({"quant_algo"}, "");
      const uint32_t group = inner.Uint({"group_size"}, 1, kWidthMax, 16);
      if (!inner.status().ok()) return inner.status();
      auto format = ModelOptFormat(kind, group, at);
      if (!format.ok()) return format.status();
      out->table_.emplace(std::string(Bare(path)), *format);
    }
    return std::unique_ptr<QuantizationConfig>(std::move(out));
  }

  // Exact path first, then the fused q/k/v module, then the nearest parent.
  absl::StatusOr<ModuleFormat> FormatOf(std::string_view path, ModuleClass kind) const override {
    auto excluded = exclude_.Match(path, kind);
    if (!excluded.ok()) return excluded.status();
    if (*excluded != NameList::kNone) return ModuleFormat{};
    if (uniform_) return kind == ModuleClass::kLinear ? *uniform_ : ModuleFormat{};
    std::string at(Bare(path));
    if (const auto it = table_.find(at); it != table_.end()) return it->second;
    const size_t dot = at.rfind('.');
    const std::string leaf = dot == std::string::npos ? at : at.substr(dot + 1);
    if (leaf == "q_proj" || leaf == "k_proj" || leaf == "v_proj") {
      const auto it = table_.find(at.substr(0, at.size() - leaf.size()) + "qkv_proj");
      if (it != table_.end()) return it->second;
    }
    if (kind != ModuleClass::kLinear) return ModuleFormat{};
    for (size_t end = at.rfind('.'); end != std::string::npos; end = at.rfind('.')) {
      at.resize(end);
      if (const auto it = table_.find(at); it != table_.end()) return it->second;
    }
    return ModuleFormat{};
  }
  std::string_view method() const override { return "modelopt"; }

 private:
  NameList exclude_;
  std::optional<ModuleFormat> uniform_;
  std::map<std::string, ModuleFormat> table_;
};

}  // namespace

std::string_view ModuleLayoutName(ModuleLayout layout) {
  switch (layout) {
    case ModuleLayout::kDense:
      return "unquantized";
    case ModuleLayout::kIntPacked:
      return "pack-quantized";
    case ModuleLayout::kIntPlain:
      return "int-quantized";
    case ModuleLayout::kFp8:
      return "fp8";
    case ModuleLayout::kNvfp4Packed:
      return "nvfp4-pack-quantized";
    case ModuleLayout::kNvfp4ModelOpt:
      return "nvfp4";
  }
  return "?";
}

absl::StatusOr<std::unique_ptr<QuantizationConfig>> QuantizationConfig::Parse(
    std::string_view config_json, std::string_view hf_quant_json) {
  auto config = ParsePythonJson(config_json, "config.json");
  if (!config.ok()) return config.status();
  JsonFields fields(*config, "config.json: ");
  if (const json* quantization = fields.Find({"quantization_config"})) {
    if (!quantization->is_object()) {
      return absl::InvalidArgumentError("config.json: quantization_config: must be an object");
    }
    JsonFields inner(*quantization, "config.json: quantization_config.");
    const std::string method = inner.String({"quant_method"}, "");
    if (!inner.status().ok()) return inner.status();
    if (method == "compressed-tensors") return CompressedTensors::Read(*quantization);
    if (method == "modelopt" || method == "modelopt_mixed" || method == "modelopt_fp4") {
      return ModelOpt::Read(*quantization, "config.json: quantization_config.");
    }
    return absl::UnimplementedError(Concat("config.json: quantization_config.quant_method: is \"",
                                           method, "\"; supported: compressed-tensors, modelopt"));
  }
  if (hf_quant_json.empty()) {
    return std::unique_ptr<QuantizationConfig>(std::make_unique<Unquantized>());
  }
  auto other = ParsePythonJson(hf_quant_json, "hf_quant_config.json");
  if (!other.ok()) return other.status();
  const auto quantization = other->find("quantization");
  if (quantization == other->end() || !quantization->is_object()) {
    return absl::InvalidArgumentError(
        "hf_quant_config.json: quantization: is missing or not an object");
  }
  return ModelOpt::Read(*quantization, "hf_quant_config.json: quantization.");
}

absl::StatusOr<std::unique_ptr<QuantizationConfig>> QuantizationConfig::Load(
    const std::string& model_dir) {
  auto config = ReadTextFile(model_dir + "/config.json", kConfigBytesMax);
  if (!config.ok()) return config.status();
  auto hf_quant = ReadTextFile(model_dir + "/hf_quant_config.json", kConfigBytesMax);
  if (!hf_quant.ok() && !absl::IsNotFound(hf_quant.status())) return hf_quant.status();
  return Parse(*config, hf_quant.ok() ? std::string_view(*hf_quant) : "");
}

uint64_t StoredMatrixBytes(const ModuleFormat& format, uint64_t rows, uint64_t cols) {
  const uint64_t groups =
      format.group_size == 0 ? 1 : (cols + format.group_size - 1) / format.group_size;
  switch (format.layout) {
    case ModuleLayout::kDense:
      return rows * cols * 2;
    case ModuleLayout::kIntPacked: {
      const uint64_t bits = static_cast<uint64_t>(format.bits);
      const uint64_t zeros = format.symmetric ? 0 : (rows * bits + 31) / 32 * groups * 4;
      return rows * ((cols * bits + 31) / 32) * 4 + rows * groups * 2 + zeros;
    }
    case ModuleLayout::kIntPlain:
      return rows * cols + (format.per_tensor ? 4 : rows * groups * 2);
    case ModuleLayout::kFp8:
      return rows * cols + (format.per_tensor ? 4 : rows * 4);
    case ModuleLayout::kNvfp4Packed:
    case ModuleLayout::kNvfp4ModelOpt:
      return rows * ((cols + 1) / 2) + rows * groups + 4;
  }
  return 0;
}

}  // namespace tessera::engine

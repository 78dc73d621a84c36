#include "engine/weights/tensor_table.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/weights/concat.h"
#include "engine/weights/json_text.h"

namespace tessera::engine {
namespace {

using nlohmann::json;

constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";

bool Exists(const std::string& path) {
  struct stat facts;
  return ::stat(path.c_str(), &facts) == 0;
}

// Shard file name of every tensor.
absl::StatusOr<std::map<std::string, std::string>> ReadIndex(const std::string& path) {
  auto text = ReadTextFile(path, kIndexBytesMax);
  if (!text.ok()) return text.status();
  auto index = ParsePythonJson(*text, path);
  if (!index.ok()) return index.status();
  const auto map = index->find("weight_map");
  if (map == index->end() || !map->is_object()) {
    return absl::InvalidArgumentError(Concat(path, ": weight_map: is missing or not an object"));
  }
  std::map<std::string, std::string> shard_of;
  for (const auto& [name, shard] : map->items()) {
    const std::string file = shard.is_string() ? shard.get<std::string>() : "";
    // A name with a directory in it could lead anywhere.
    if (file.empty() || file.size() > 255 || file[0] == '.' ||
        file.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      return absl::InvalidArgumentError(Concat(path, ": weight_map[\"", name, "\"]: is ",
                                               Excerpt(shard),
                                               "; must be the name of a file beside the index"));
    }
    shard_of.emplace(name, file);
  }
  return shard_of;
}

}  // namespace

absl::Status TensorTable::AddFile(const std::string& path) {
  auto file = SafetensorsFile::Open(path);
  if (!file.ok()) return file.status();
  for (const StoredTensor& tensor : (*file)->tensors()) {
    if (!index_of_.emplace(tensor.name, tensors_.size()).second) {
      return absl::InvalidArgumentError(
          Concat(path, ": tensor \"", tensor.name, "\" is in another shard too"));
    }
    tensors_.push_back(&tensor);
  }
  files_.push_back(*std::move(file));
  return absl::OkStatus();
}

absl::StatusOr<TensorTable> TensorTable::Open(const std::string& model_dir) {
  TensorTable table;
  const std::string single = Concat(model_dir, "/", kSingleName);
  const std::string index_path = Concat(model_dir, "/", kIndexName);
  if (Exists(single)) {
    if (absl::Status s = table.AddFile(single); !s.ok()) return s;
  } else if (Exists(index_path)) {
    auto shard_of = ReadIndex(index_path);
    if (!shard_of.ok()) return shard_of.status();
    std::map<std::string, std::string> first_tensor;  // of each shard, for the error
    for (const auto& [name, shard] : *shard_of) first_tensor.emplace(shard, name);
    if (first_tensor.size() > kShardsMax) {
      return absl::InvalidArgumentError(Concat(index_path, ": names ", first_tensor.size(),
                                               " shards; the limit is ", kShardsMax));
    }
    for (const auto& [shard, tensor] : first_tensor) {
      const std::string path = Concat(model_dir, "/", shard);
      if (!Exists(path)) {
        return absl::NotFoundError(Concat(index_path, ": tensor \"", tensor, "\" is said to be in ",
                                          shard, ", which is not there; fetch it"));
      }
      if (absl::Status s = table.AddFile(path); !s.ok()) return s;
    }
    for (const auto& [name, shard] : *shard_of) {
      if (table.Find(name) == nullptr) {
        return absl::InvalidArgumentError(Concat(index_path, ": tensor \"", name,
                                                 "\" is said to be in ", shard,
                                                 ", but no shard holds it"));
      }
    }
  } else {
    return absl::NotFoundError(
        Concat(model_dir, ": has neither ", kSingleName, " nor ", kIndexName));
  }
  table.used_.assign(table.tensors_.size(), false);
  return table;
}

const StoredTensor* TensorTable::Find(std::string_view name) const {
  const auto it = index_of_.find(std::string(name));
  return it == index_of_.end() ? nullptr : tensors_[it->second];
}

const StoredTensor* TensorTable::Use(std::string_view name) {
  const auto it = index_of_.find(std::string(name));
  if (it == index_of_.end()) return nullptr;
  used_[it->second] = true;
  return tensors_[it->second];
}

bool TensorTable::AnyWithPrefix(std::string_view prefix) const {
  return std::any_of(tensors_.begin(), tensors_.end(), [prefix](const StoredTensor* t) {
    return std::string_view(t->name).substr(0, prefix.size()) == prefix;
  });
}

uint64_t TensorTable::bytes_used() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (used_[i]) bytes += tensors_[i]->bytes;
  }
  return bytes;
}

std::vector<const StoredTensor*> TensorTable::Unused() const {
  std::vector<const StoredTensor*> unused;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!used_[i]) unused.push_back(tensors_[i]);
  }
  std::sort(unused.begin(), unused.end(),
            [](const StoredTensor* a, const StoredTensor* b) { return a->name < b->name; });
  return unused;
}

}  // namespace tessera::engine

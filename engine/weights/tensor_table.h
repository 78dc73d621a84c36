#ifndef TESSERA_ENGINE_WEIGHTS_TENSOR_TABLE_H_
#define TESSERA_ENGINE_WEIGHTS_TENSOR_TABLE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/weights/safetensors_file.h"

namespace tessera::engine {

inline constexpr size_t kShardsMax = 4096;
inline constexpr size_t kIndexBytesMax = size_t{256} << 20;

// All tensors of a model directory by name: model.safetensors, or the shards that
// model.safetensors.index.json names. Owns the mappings. A name that is in two shards, an index
// that names an absent shard or tensor, and a shard outside the directory are refused.
// Not thread-safe while Use() is called; const methods may be called from any thread.
class TensorTable {
 public:
  static absl::StatusOr<TensorTable> Open(const std::string& model_dir);

  // Null when there is none. Find does not mark it as used, Use does.
  const StoredTensor* Find(std::string_view name) const;
  const StoredTensor* Use(std::string_view name);
  bool AnyWithPrefix(std::string_view prefix) const;

  size_t size() const { return tensors_.size(); }
  uint64_t bytes_used() const;
  std::vector<const StoredTensor*> Unused() const;  // by name

 private:
  absl::Status AddFile(const std::string& path);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<const StoredTensor*> tensors_;
  std::vector<bool> used_;
  absl::flat_hash_map<std::string, size_t> index_of_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WEIGHTS_TENSOR_TABLE_H_

#ifndef TESSERA_ENGINE_KV_ID_POOL_H_
#define TESSERA_ENGINE_KV_ID_POOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/check.h"
#include "engine/core/ids.h"

namespace tessera::engine {

// Host accounting of things the workers hold: KV blocks or state slots. Holds no device memory.
// Everything is reserved at construction; the id given back last is taken first, so that what is
// hot in a cache is used again. Taking what is free and giving what is taken are the only moves:
// giving twice aborts, since it can only be our bug.
// Threading: one thread.  Cost: O(1) an id.
template <typename IdType>
class IdPool {
 public:
  explicit IdPool(uint32_t count) : taken_(count, false) {
    free_.reserve(count);
    for (uint32_t i = count; i > 0; --i) free_.push_back(IdType(i - 1));
  }

  // nullopt when none is free.
  std::optional<IdType> Take() {
    if (free_.empty()) return std::nullopt;
    const IdType id = free_.back();
    free_.pop_back();
    taken_[id.value] = true;
    return id;
  }

  void Give(IdType id) {
    TESSERA_CHECK(id.value < taken_.size() && taken_[id.value],
                  "id " + std::to_string(id.value) + " of " + std::to_string(taken_.size()));
    taken_[id.value] = false;
    free_.push_back(id);
  }

  bool IsTaken(IdType id) const { return id.value < taken_.size() && taken_[id.value]; }
  uint32_t free_count() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t taken_count() const { return total() - free_count(); }
  uint32_t total() const { return static_cast<uint32_t>(taken_.size()); }

 private:
  std::vector<IdType> free_;
  std::vector<bool> taken_;
};

using BlockPool = IdPool<BlockId>;
using SlotPool = IdPool<SlotId>;

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_KV_ID_POOL_H_

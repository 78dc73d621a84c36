#ifndef TESSERA_ENGINE_KV_BLOCK_TABLE_H_
#define TESSERA_ENGINE_KV_BLOCK_TABLE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine/core/ids.h"
#include "engine/kv/id_pool.h"

namespace tessera::engine {

// The KV blocks of one sequence in the order of its tokens: token t lies in block t / block_tokens.
// Does not own the pool; Release must be called before a table that holds blocks is destroyed.
// Threading: one thread.
class BlockTable {
 public:
  // Takes `count` blocks from `pool` and appends them. False, and nothing taken, when it has fewer.
  bool Grow(BlockPool& pool, uint32_t count);

  // Gives every block back.
  void Release(BlockPool& pool);

  const std::vector<BlockId>& blocks() const { return blocks_; }
  uint32_t count() const { return static_cast<uint32_t>(blocks_.size()); }

 private:
  std::vector<BlockId> blocks_;
};

// Proves that every taken block of `pool` is in exactly one place of exactly one of `tables`.
// kInternal names the first block that is not.  Cost: O(pool + blocks of the tables).
absl::Status CheckBlocksConserved(const BlockPool& pool, std::span<const BlockTable* const> tables);

// The same for slots, each held once by one of `slots`.
absl::Status CheckSlotsConserved(const SlotPool& pool, std::span<const SlotId> slots);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_KV_BLOCK_TABLE_H_

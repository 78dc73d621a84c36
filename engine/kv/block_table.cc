#include "engine/kv/block_table.h"

#include "absl/strings/str_cat.h"

namespace tessera::engine {
namespace {

template <typename IdType>
absl::Status Tally(const IdPool<IdType>& pool, IdType id, const char* kind,
                   std::vector<bool>& seen) {
  if (!pool.IsTaken(id)) {
    return absl::InternalError(absl::StrCat(kind, " ", id.value, " is held but not taken"));
  }
  if (seen[id.value]) return absl::InternalError(absl::StrCat(kind, " ", id.value, " held twice"));
  seen[id.value] = true;
  return absl::OkStatus();
}

template <typename IdType>
absl::Status NothingLeaked(const IdPool<IdType>& pool, const char* kind,
                           const std::vector<bool>& seen) {
  for (uint32_t i = 0; i < pool.total(); ++i) {
    if (pool.IsTaken(IdType(i)) && !seen[i]) {
      return absl::InternalError(absl::StrCat(kind, " ", i, " is taken but held by nothing"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool BlockTable::Grow(BlockPool& pool, uint32_t count) {
  if (pool.free_count() < count) return false;
  for (uint32_t i = 0; i < count; ++i) blocks_.push_back(*pool.Take());
  return true;
}

void BlockTable::Release(BlockPool& pool) {
  for (BlockId block : blocks_) pool.Give(block);
  blocks_.clear();
}

absl::Status CheckBlocksConserved(const BlockPool& pool,
                                  std::span<const BlockTable* const> tables) {
  std::vector<bool> seen(pool.total(), false);
  for (const BlockTable* table : tables) {
    for (BlockId block : table->blocks()) {
      if (absl::Status s = Tally(pool, block, "block", seen); !s.ok()) return s;
    }
  }
  return NothingLeaked(pool, "block", seen);
}

absl::Status CheckSlotsConserved(const SlotPool& pool, std::span<const SlotId> slots) {
  std::vector<bool> seen(pool.total(), false);
  for (SlotId slot : slots) {
    if (absl::Status s = Tally(pool, slot, "slot", seen); !s.ok()) return s;
  }
  return NothingLeaked(pool, "slot", seen);
}

}  // namespace tessera::engine

#ifndef TESSERA_TOKENIZER_BPE_MERGE_TABLE_H_
#define TESSERA_TOKENIZER_BPE_MERGE_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tokenizer/vocab/tokenizer_file.h"

namespace tessera::tokenizer {

// Byte-pair merges: joins neighbouring symbols, the pair of least rank first and the leftmost among
// equals, until no pair is in the list.
// Threading: immutable once built. Cost: quadratic in the symbols up to kLinearSymbolsMax, where
// that is fastest, and O(n log n) above, so no text is slow.
class MergeTable {
 public:
  static constexpr size_t kLinearSymbolsMax = 32;

  explicit MergeTable(const std::vector<Merge>& merges);

  // Merges `symbols` in place.
  void Apply(std::vector<uint32_t>& symbols) const;

 private:
  struct Joined {
    uint32_t rank;
    uint32_t id;
  };
  static constexpr uint32_t kNoRank = 0xFFFFFFFF;

  Joined Find(uint32_t left, uint32_t right) const;
  void ApplyLinear(std::vector<uint32_t>& symbols) const;
  void ApplyHeap(std::vector<uint32_t>& symbols) const;

  absl::flat_hash_map<uint64_t, Joined> table_;
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_BPE_MERGE_TABLE_H_

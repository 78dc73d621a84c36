#ifndef TESSERA_TOKENIZER_VOCAB_STRING_INDEX_H_
#define TESSERA_TOKENIZER_VOCAB_STRING_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::tokenizer {

// 64 bits that depend on every byte of `bytes`.
uint64_t HashBytes(std::string_view bytes);

// Strings by id, and ids by string: the strings of a vocabulary, in one flat array with an open
// hash table over it. Ids may have gaps. Each id has at most one string and each string one id.
// Cost: a look-up hashes the string and reads one or two cache lines.
class StringIndex {
 public:
  // Room for this many strings and bytes, so that nothing is moved while they are added.
  void Reserve(size_t count, size_t bytes);

  // False if the id or the string is there already. All bytes together stay under 4 GiB, and ids
  // under kIdMax of the caller (the arrays grow with the highest id).
  bool Add(uint32_t id, std::string_view text);

  std::optional<uint32_t> Find(std::string_view text) const;
  bool Has(uint32_t id) const { return id < entries_.size() && entries_[id].is_set != 0; }
  std::string_view Text(uint32_t id) const {
    if (!Has(id)) return {};
    return std::string_view(bytes_).substr(entries_[id].begin, entries_[id].size);
  }
  // One more than the highest id.
  size_t id_end() const { return entries_.size(); }
  size_t count() const { return count_; }

 private:
  struct Entry {
    uint32_t begin = 0;
    uint32_t size : 31 = 0;
    uint32_t is_set : 1 = 0;
  };
  static constexpr uint32_t kFree = 0xFFFFFFFF;

  void Grow(size_t slots);
  // The slot that holds `text`, or the free one where it belongs.
  size_t SlotOf(std::string_view text) const;

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // ids; a power of two of them, at most half full
  size_t count_ = 0;
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_VOCAB_STRING_INDEX_H_

#include "tokenizer/vocab/string_index.h"

#include <bit>
#include <cstring>

namespace tessera::tokenizer {
namespace {

// Two 64-bit factors of 1 (mod 2) with well-mixed bits.
constexpr uint64_t kFactorA = 0x9E3779B97F4A7C15u;
constexpr uint64_t kFactorB = 0xD6E8FEB86659FD93u;

uint64_t Fold(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t Load(const char* from, size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, from, size);
  return word;
}

}  // namespace

uint64_t HashBytes(std::string_view bytes) {
  uint64_t hash = kFactorA ^ bytes.size();
  while (bytes.size() > 8) {
    hash = Fold(hash ^ Load(bytes.data(), 8), kFactorB);
    bytes.remove_prefix(8);
  }
  return Fold(hash ^ Load(bytes.data(), bytes.size()), kFactorA);
}

void StringIndex::Reserve(size_t count, size_t bytes) {
  bytes_.reserve(bytes);
  entries_.reserve(count);
  if (slots_.size() < count * 2) Grow(std::bit_ceil(count * 2));
}

void StringIndex::Grow(size_t slots) {
  slots_.assign(slots, kFree);
  for (uint32_t id = 0; id < entries_.size(); ++id) {
    if (Has(id)) slots_[SlotOf(Text(id))] = id;
  }
}

size_t StringIndex::SlotOf(std::string_view text) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = HashBytes(text) & mask;
  while (slots_[slot] != kFree && Text(slots_[slot]) != text) slot = (slot + 1) & mask;
  return slot;
}

bool StringIndex::Add(uint32_t id, std::string_view text) {
  if (Has(id)) return false;
  if ((count_ + 1) * 2 > slots_.size()) Grow(slots_.empty() ? 64 : slots_.size() * 2);
  const size_t slot = SlotOf(text);
  if (slots_[slot] != kFree) return false;
  if (id >= entries_.size()) entries_.resize(id + size_t{1});
  entries_[id].begin = static_cast<uint32_t>(bytes_.size());
  entries_[id].size = static_cast<uint32_t>(text.size());
  entries_[id].is_set = 1;
  bytes_.append(text);
  slots_[slot] = id;
  ++count_;
  return true;
}

std::optional<uint32_t> StringIndex::Find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const uint32_t id = slots_[SlotOf(text)];
  if (id == kFree) return std::nullopt;
  return id;
}

}  // namespace tessera::tokenizer

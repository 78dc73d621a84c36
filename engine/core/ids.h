#ifndef TESSERA_ENGINE_CORE_IDS_H_
#define TESSERA_ENGINE_CORE_IDS_H_

#include <compare>
#include <cstdint>
#include <functional>

namespace tessera::engine {

// An integer with a meaning: ids of different kinds do not mix. `Tag` names the kind.
template <typename Tag, typename Int>
struct Id {
  Int value = 0;
  constexpr Id() = default;
  constexpr explicit Id(Int v) : value(v) {}
  friend constexpr auto operator<=>(Id, Id) = default;
};

// Position in the model's vocabulary.
using TokenId = Id<struct TokenTag, uint32_t>;
// One KV page of the pool; the same on every rank.
using BlockId = Id<struct BlockTag, uint32_t>;
// One state slot (SSM and convolution state of a sequence); the same on every rank.
using SlotId = Id<struct SlotTag, uint32_t>;
// One choice of one request inside the engine; never used twice by one engine process.
using SequenceId = Id<struct SequenceTag, uint64_t>;

}  // namespace tessera::engine

template <typename Tag, typename Int>
struct std::hash<tessera::engine::Id<Tag, Int>> {
  size_t operator()(tessera::engine::Id<Tag, Int> id) const noexcept {
    return std::hash<Int>()(id.value);
  }
};

#endif  // TESSERA_ENGINE_CORE_IDS_H_

#ifndef TESSERA_ENGINE_SAMPLING_TOKEN_HISTORY_H_
#define TESSERA_ENGINE_SAMPLING_TOKEN_HISTORY_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "engine/core/ids.h"

namespace tessera::engine {

// Which tokens a sequence has seen, for penalties: one entry a distinct token. Adding is O(1).
// A sequence whose parameters have no penalty need not keep one: an empty history is right for it.
// Not thread-safe.
class TokenHistory {
 public:
  struct Counts {
    uint32_t prompt = 0;
    uint32_t output = 0;
  };

  void AddPrompt(TokenId token) { ++counts_[token.value].prompt; }
  void AddOutput(TokenId token) { ++counts_[token.value].output; }
  void Clear() { counts_.clear(); }

  const absl::flat_hash_map<uint32_t, Counts>& counts() const { return counts_; }

 private:
  absl::flat_hash_map<uint32_t, Counts> counts_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SAMPLING_TOKEN_HISTORY_H_

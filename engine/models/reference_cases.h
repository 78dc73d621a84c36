#ifndef TESSERA_ENGINE_MODELS_REFERENCE_CASES_H_
#define TESSERA_ENGINE_MODELS_REFERENCE_CASES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/core/ids.h"
#include "engine/models/model.h"

// What an independent implementation says of a tiny checkpoint (tests/golden/model/README.md), and
// a driver that runs a model over a prompt in pieces. For tests.

namespace tessera::engine {

struct ReferenceCase {
  std::vector<TokenId> prompt;
  std::vector<uint32_t> logit_positions;
  std::vector<float> logits;  // [logit_positions, vocab]
  struct Step {
    TokenId token;
    double margin = 0;  // between the two largest logits
  };
  std::vector<Step> greedy;
};

// Aborts the test binary when the files are not as described.
std::vector<ReferenceCase> ReadReferenceCases(const std::string& folder);

// One sequence on a model: its slot, its blocks, how far it is.
class SequenceDriver {
 public:
  // Takes blocks [first_block, first_block + block_count) of the pool, in reverse order so that a
  // table that was ignored would show.
  SequenceDriver(SlotId slot, uint32_t first_block, uint32_t block_count);

  // The next `tokens` as a chunk; the spans live until the next call.
  SequenceChunk Next(std::span<const TokenId> tokens, std::span<const uint32_t> logit_offsets);

 private:
  SlotId slot_;
  std::vector<BlockId> blocks_;
  uint32_t position_ = 0;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_MODELS_REFERENCE_CASES_H_

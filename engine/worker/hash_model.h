#ifndef TESSERA_ENGINE_WORKER_HASH_MODEL_H_
#define TESSERA_ENGINE_WORKER_HASH_MODEL_H_

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/models/model.h"

namespace tessera::engine {

// A model for tests: its favourite next token is a hash of all tokens before it. It keeps tokens in
// its KV blocks and a running hash in its slot, as a hybrid model keeps keys and state; were a
// block table or a slot mixed up, the two would differ and it would say so.
class HashModel final : public Model {
 public:
  HashModel(uint32_t vocab, const ModelLimits& limits)
      : limits_(limits),
        tokens_(size_t{limits.blocks} * limits.block_tokens),
        hashes_(limits.slots, 0) {
    shape_ = {.architecture = "HashModel", .vocab = vocab, .context_tokens_max = 1u << 20};
  }

  static uint64_t Mix(uint64_t hash, TokenId token) {
    return (hash ^ (token.value + 1)) * 0x100000001B3ull + 0x51;
  }
  // What follows `tokens` when it is sampled greedily.
  static TokenId Favourite(std::span<const TokenId> tokens, uint32_t vocab) {
    uint64_t hash = 0;
    for (TokenId token : tokens) hash = Mix(hash, token);
    return TokenId(static_cast<uint32_t>((hash >> 17) % vocab));
  }

  const ModelShape& shape() const override { return shape_; }
  const ModelLimits& limits() const override { return limits_; }

  absl::Status Forward(std::span<const SequenceChunk> chunks, std::span<float> logits) override {
    size_t row = 0;
    for (const SequenceChunk& chunk : chunks) {
      if (chunk.zero_slot) hashes_[chunk.slot.value] = 0;
      uint64_t& state = hashes_[chunk.slot.value];
      size_t next_logit = 0;
      for (uint32_t t = 0; t < chunk.tokens.size(); ++t) {
        At(chunk, chunk.position + t) = chunk.tokens[t];
        state = Mix(state, chunk.tokens[t]);
        if (next_logit == chunk.logit_offsets.size() || chunk.logit_offsets[next_logit] != t) {
          continue;
        }
        ++next_logit;
        uint64_t seen = 0;
        for (uint32_t p = 0; p <= chunk.position + t; ++p) seen = Mix(seen, At(chunk, p));
        if (seen != state) {
          return absl::DataLossError(absl::StrCat("slot ", chunk.slot.value,
                                                  ": state and KV differ at ", chunk.position + t));
        }
        const std::span<float> out = logits.subspan(row * shape_.vocab, shape_.vocab);
        std::fill(out.begin(), out.end(), 0.0f);
        out[(state >> 17) % shape_.vocab] = 20.0f;
        if (chunk.tokens[t].value == poison) out[0] = std::nanf("");
        ++row;
      }
    }
    return absl::OkStatus();
  }

  // After this token the logits are not finite.
  uint32_t poison = 0xFFFFFFFF;

 private:
  TokenId& At(const SequenceChunk& chunk, uint32_t position) {
    const BlockId block = chunk.block_table[position / limits_.block_tokens];
    return tokens_[size_t{block.value} * limits_.block_tokens + position % limits_.block_tokens];
  }

  ModelShape shape_;
  const ModelLimits limits_;
  std::vector<TokenId> tokens_;
  std::vector<uint64_t> hashes_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WORKER_HASH_MODEL_H_

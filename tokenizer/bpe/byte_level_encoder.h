#ifndef TESSERA_TOKENIZER_BPE_BYTE_LEVEL_ENCODER_H_
#define TESSERA_TOKENIZER_BPE_BYTE_LEVEL_ENCODER_H_

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tokenizer/bpe/added_token_matcher.h"
#include "tokenizer/bpe/merge_table.h"
#include "tokenizer/bpe/pattern_scanner.h"
#include "tokenizer/bpe/tokenizer.h"
#include "tokenizer/vocab/string_index.h"
#include "tokenizer/vocab/tokenizer_file.h"

namespace tessera::tokenizer {

// Byte-level BPE: the text is split at added tokens, each gap by a pattern, each piece into its
// bytes, which are merged. No normalizer.
// Threading: immutable once built.
class ByteLevelEncoder final : public TextEncoder {
 public:
  // Takes what it needs out of `file`. Errors: kUnimplemented names the component that is not
  // supported.
  static absl::StatusOr<std::unique_ptr<const ByteLevelEncoder>> Create(TokenizerFile& file);

  absl::Status Encode(std::string_view text, AddedTokens added_tokens, std::vector<TokenId>& ids,
                      std::vector<TokenSpan>* spans) const override;
  std::optional<TokenId> Find(std::string_view token) const override;

 private:
  struct Shape {
    std::optional<PatternFamily> pattern;  // none: a gap is one piece
  };
  // The matchers of one trust: tokens looked for in the raw text, then in the gaps.
  struct Matchers {
    AddedTokenMatcher raw;
    AddedTokenMatcher normalized;
  };

  ByteLevelEncoder(TokenizerFile& file, const Shape& shape);
  static absl::StatusOr<Shape> ReadShape(const nlohmann::ordered_json& pre_tokenizer);
  static Matchers MatchersOf(const std::vector<AddedToken>& tokens, bool with_special);

  void EncodeGap(std::string_view text, uint32_t begin, uint32_t end, std::vector<TokenId>& ids,
                 std::vector<TokenSpan>* spans) const;
  void EncodePiece(std::string_view text, uint32_t begin, uint32_t end, std::vector<TokenId>& ids,
                   std::vector<TokenSpan>* spans) const;

  std::vector<AddedToken> added_tokens_;
  StringIndex vocab_;
  StringIndex bytes_;  // the vocabulary's entries as bytes, for ignore_merges
  std::array<uint32_t, 256> byte_ids_;
  std::vector<uint32_t> token_bytes_;  // length by id
  MergeTable merges_;
  std::optional<uint32_t> unk_id_;
  bool fuse_unk_ = false;
  bool ignore_merges_ = false;
  Shape shape_;
  Matchers all_, ordinary_;  // kParse, kSpecialAsText
};

// How the ids of such a file become text. Errors: kUnimplemented names the decoder.
absl::StatusOr<TokenTable> ByteLevelTokenTable(const TokenizerFile& file);

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_BPE_BYTE_LEVEL_ENCODER_H_

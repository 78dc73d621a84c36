#ifndef TESSERA_TOKENIZER_VOCAB_TOKENIZER_FILE_H_
#define TESSERA_TOKENIZER_VOCAB_TOKENIZER_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tokenizer/vocab/string_index.h"

namespace tessera::tokenizer {

// Limits of a tokenizer.json: well above the largest known (34 MB, 262,144 entries, 515,000
// merges, 6,415 added tokens). Beyond them it is refused (kResourceExhausted).
inline constexpr size_t kTokenizerBytesMax = size_t{256} << 20;
inline constexpr uint32_t kTokenIdMax = (1u << 22) - 1;
inline constexpr size_t kMergesMax = size_t{1} << 23;
inline constexpr size_t kAddedTokensMax = 65536;
inline constexpr size_t kAddedTokenBytesMax = 4096;
inline constexpr size_t kComponentBytesMax = size_t{16} << 20;

struct AddedToken {
  uint32_t id = 0;
  std::string content;
  bool special = false;      // dropped by skip_special_tokens
  bool normalized = false;   // looked for in the normalized text
  bool single_word = false;  // not beside a word character
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and behind it
};

// One merge of a BPE model: the ids of its two parts and of their joined string. The rank is its
// place in the list.
struct Merge {
  uint32_t left;
  uint32_t right;
  uint32_t joined;
};

enum class ModelType : uint8_t { kBpe, kUnigram };

struct TokenizerModel {
  ModelType type = ModelType::kBpe;
  StringIndex vocab;
  bool byte_fallback = false;

  // BPE only.
  std::vector<Merge> merges;
  std::optional<uint32_t> unk_id;  // Unigram too
  bool fuse_unk = false;
  bool ignore_merges = false;

  // Unigram only: one for each id.
  std::vector<double> scores;
};

// tokenizer.json, checked and resolved as far as it can be without knowing what its components do.
struct TokenizerFile {
  std::vector<AddedToken> added_tokens;
  TokenizerModel model;
  // null, or an object with a string "type".
  nlohmann::ordered_json normalizer;
  nlohmann::ordered_json pre_tokenizer;
  nlohmann::ordered_json post_processor;
  nlohmann::ordered_json decoder;
};

// Errors: kInvalidArgument names the field; kUnimplemented names the model type or the setting that
// is not supported (WordPiece, WordLevel, dropout, affixes); kResourceExhausted names the limit.
// "truncation" and "padding" are ignored.
// Cost: two passes over the text; memory of a few times the vocabulary's strings.
absl::StatusOr<TokenizerFile> ParseTokenizerFile(std::string_view json);

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_VOCAB_TOKENIZER_FILE_H_

#ifndef TESSERA_TOKENIZER_DETOKENIZER_TOKEN_TABLE_H_
#define TESSERA_TOKENIZER_DETOKENIZER_TOKEN_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::tokenizer {

using TokenId = uint32_t;

// How the bytes of one token after another become text: what the decoder chains of real
// tokenizers come down to.
struct DecodeRules {
  // A run of byte tokens (<0xNN>) is text if the whole run is UTF-8, and else one U+FFFD for each
  // byte of the run. False: every token is bytes, and each maximal broken part is one U+FFFD.
  bool byte_fallback = false;
  // This many spaces are taken from the start of the whole text.
  uint32_t strip_spaces_left = 0;
  // The first token loses its metaspaces (kMetaspace below): sentencepiece's dummy prefix.
  bool drop_first_metaspace = false;
  // No decoder in the file: tokens are joined by one space.
  bool join_with_spaces = false;
};

// One entry for each id: its bytes as they reach the text, and its kind. Immutable once built.
class TokenTable {
 public:
  enum Kind : uint8_t {
    kUnknown = 0,    // an id that the file does not have: gives nothing
    kText = 1,       // bytes
    kByte = 2,       // one byte of a byte-fallback run
    kSpecial = 4,    // flag: dropped by skip_special_tokens
    kMetaspace = 8,  // flag: its spaces were written as U+2581
  };

  // Appends the entry for id size(). The bytes of all entries must stay under 4 GiB (the file
  // limits see to that).
  void Add(std::string_view bytes, uint8_t kind);
  void set_rules(const DecodeRules& rules) { rules_ = rules; }

  size_t size() const { return kinds_.size(); }
  std::string_view Bytes(TokenId id) const {
    if (id >= kinds_.size()) return {};
    return std::string_view(bytes_).substr(begins_[id], begins_[id + 1] - begins_[id]);
  }
  uint8_t kind(TokenId id) const { return id < kinds_.size() ? kinds_[id] : uint8_t{kUnknown}; }
  bool IsSpecial(TokenId id) const { return (kind(id) & kSpecial) != 0; }
  const DecodeRules& rules() const { return rules_; }

 private:
  std::string bytes_;
  std::vector<uint32_t> begins_ = {0};
  std::vector<uint8_t> kinds_;
  DecodeRules rules_;
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_DETOKENIZER_TOKEN_TABLE_H_

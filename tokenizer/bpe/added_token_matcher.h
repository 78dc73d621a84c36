#ifndef TESSERA_TOKENIZER_BPE_ADDED_TOKEN_MATCHER_H_
#define TESSERA_TOKENIZER_BPE_ADDED_TOKEN_MATCHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocab/tokenizer_file.h"
#include "tokenizer/vocab/unicode_class.h"

namespace tessera::tokenizer {

// Part of a text: an added token, or a gap between added tokens. Bytes [begin, end) of the text.
struct TextPart {
  static constexpr uint32_t kGap = 0xFFFFFFFF;
  uint32_t begin;
  uint32_t end;
  uint32_t token_id;  // kGap: ordinary text
};

// Finds added tokens in a text: leftmost, then longest. What each match takes is then subject to
// the token's flags: single_word drops a match beside a word character (a shorter token is not
// tried in its place), lstrip and rstrip take the white space around it too.
//
// Threading: immutable once built. Cost: one table look-up for each byte at which no token begins.
class AddedTokenMatcher {
 public:
  // Looks for `tokens` under the spelling `spellings[i]` each (their content, or its normalized
  // form). Empty spellings never match; of two equal ones the last wins.
  AddedTokenMatcher(const std::vector<AddedToken>& tokens,
                    const std::vector<std::string>& spellings);

  bool empty() const { return nodes_.size() <= 1; }

  // Appends the parts of text[begin, end), which is matched as if it were the whole text, in order
  // and without empty gaps.
  void Split(std::string_view text, uint32_t begin, uint32_t end,
             std::vector<TextPart>& parts) const;

 private:
  struct Node {
    uint32_t edges_begin = 0;
    uint32_t edges_count = 0;
    int32_t token = -1;  // index into tokens_ that ends here
  };
  struct Edge {
    uint8_t byte;
    uint32_t node;
  };
  struct Flags {
    uint32_t id;
    bool single_word;
    bool lstrip;
    bool rstrip;
  };

  uint32_t Child(uint32_t node, uint8_t byte) const;
  // The token that begins text[pos], the longest; -1 if none does. `size` is its length.
  int32_t LongestAt(std::string_view text, size_t pos, size_t& size) const;

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;  // of one node together, by byte
  std::array<uint32_t, 256> root_children_ = {};
  std::vector<Flags> tokens_;
  const UnicodeClasses& classes_ = UnicodeClasses::Get();
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_BPE_ADDED_TOKEN_MATCHER_H_

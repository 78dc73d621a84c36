#include "tokenizer/bpe/added_token_matcher.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tokenizer/vocab/utf8.h"

namespace tessera::tokenizer {
namespace {

// The start of the code point that ends at `end`.
size_t PreviousCodePoint(std::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80);
  return end;
}

bool IsWordCharacter(const UnicodeClasses& classes, char32_t c) {
  // Letters, marks, numbers, connector punctuation and the two joiners.
  if (c == '_' || c == 0x203F || c == 0x2040 || c == 0x2054 || c == 0x200C || c == 0x200D) {
    return true;
  }
  return In(kLetters | kBit(kM) | kBit(kN), classes.ClassOf(c));
}

bool IsSpaceAt(const UnicodeClasses& classes, std::string_view text, size_t pos) {
  return In(kSpaces, classes.ClassOf(NextCodePoint(text, pos)));
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(const std::vector<AddedToken>& tokens,
                                     const std::vector<std::string>& spellings) {
  // A sorted list of the spellings gives the trie in the order of its nodes' edges.
  std::map<std::string_view, const AddedToken*> sorted;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!spellings[i].empty()) sorted[spellings[i]] = &tokens[i];
  }
  std::vector<std::map<uint8_t, uint32_t>> children(1);
  nodes_.resize(1);
  for (const auto& [spelling, token] : sorted) {
    uint32_t node = 0;
    for (const char c : spelling) {
      const auto [edge, is_new] =
          children[node].try_emplace(static_cast<uint8_t>(c), static_cast<uint32_t>(nodes_.size()));
      node = edge->second;
      if (is_new) {
        nodes_.emplace_back();
        children.emplace_back();
      }
    }
    nodes_[node].token = static_cast<int32_t>(tokens_.size());
    tokens_.push_back({token->id, token->single_word, token->lstrip, token->rstrip});
  }
  for (size_t node = 0; node < nodes_.size(); ++node) {
    nodes_[node].edges_begin = static_cast<uint32_t>(edges_.size());
    nodes_[node].edges_count = static_cast<uint32_t>(children[node].size());
    for (const auto& [byte, child] : children[node]) edges_.push_back({byte, child});
  }
  for (const auto& [byte, child] : children[0]) root_children_[byte] = child;
}

uint32_t AddedTokenMatcher::Child(uint32_t node, uint8_t byte) const {
  if (node == 0) return root_children_[byte];
  const Edge* begin = edges_.data() + nodes_[node].edges_begin;
  const Edge* end = begin + nodes_[node].edges_count;
  const Edge* edge = std::lower_bound(
      begin, end, byte, [](const Edge& e, uint8_t wanted) { return e.byte < wanted; });
  return edge != end && edge->byte == byte ? edge->node : 0;
}

int32_t AddedTokenMatcher::LongestAt(std::string_view text, size_t pos, size_t& size) const {
  int32_t found = -1;
  uint32_t node = 0;
  for (size_t i = pos; i < text.size(); ++i) {
    node = Child(node, static_cast<uint8_t>(text[i]));
    if (node == 0) break;
    if (nodes_[node].token >= 0) {
      found = nodes_[node].token;
      size = i + 1 - pos;
    }
  }
  return found;
}

void AddedTokenMatcher::Split(std::string_view whole, uint32_t begin, uint32_t end,
                              std::vector<TextPart>& parts) const {
  const std::string_view text = whole.substr(begin, end - begin);
  size_t done = 0;  // everything before is in `parts`
  size_t pos = empty() ? text.size() : 0;
  const auto add = [&](size_t from, size_t to, uint32_t id) {
    parts.push_back({static_cast<uint32_t>(begin + from), static_cast<uint32_t>(begin + to), id});
  };
  while (pos < text.size()) {
    size_t size = 0;
    if (root_children_[static_cast<uint8_t>(text[pos])] == 0) {
      ++pos;
      continue;
    }
    const int32_t token = LongestAt(text, pos, size);
    if (token < 0) {
      ++pos;
      continue;
    }
    size_t from = pos;
    size_t to = pos + size;
    pos = to;
    const Flags& flags = tokens_[token];
    if (flags.single_word) {
      size_t before = from > 0 ? PreviousCodePoint(text, from) : 0;
      size_t after = to;
      if ((from > 0 && IsWordCharacter(classes_, NextCodePoint(text, before))) ||
          (to < text.size() && IsWordCharacter(classes_, NextCodePoint(text, after)))) {
        continue;
      }
    }
    if (flags.lstrip) {
      // What the match before took stays with it.
      while (from > done && IsSpaceAt(classes_, text, PreviousCodePoint(text, from))) {
        from = PreviousCodePoint(text, from);
      }
      from = std::max(from, done);
    }
    if (flags.rstrip) {
      while (to < text.size() && IsSpaceAt(classes_, text, to)) {
        to += Utf8Length(static_cast<uint8_t>(text[to]));
      }
    }
    if (done < from) add(done, from, TextPart::kGap);
    add(from, to, flags.id);
    done = to;
  }
  if (done < text.size()) add(done, text.size(), TextPart::kGap);
}

}  // namespace tessera::tokenizer

#include "tokenizer/bpe/pattern_scanner.h"

#include <algorithm>

#include "tokenizer/vocab/unicode_class.h"
#include "tokenizer/vocab/utf8.h"

namespace tessera::tokenizer {
namespace {

constexpr std::string_view kNemoPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDigits3Pattern = R"(\p{N}{1,3})";
constexpr std::string_view kCjkRunPattern = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+";
// The file writes CR and LF themselves.
constexpr std::string_view kDeepseekV3Pattern =
    "[!\"#$%&'()*+,\\-./"
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

// The class of "no character": in no set.
constexpr uint8_t kEnd = 15;
constexpr ClassSet kUpper = kBit(kLu) | kBit(kLt) | kBit(kLm) | kBit(kLo) | kBit(kM);
constexpr ClassSet kLower = kBit(kLl) | kBit(kLm) | kBit(kLo) | kBit(kM);
// Everything but the end.
constexpr ClassSet kAll = (1u << (kNewline + 1)) - 1;

// What the families that tile differ in.
struct Traits {
  bool cased;                   // words by case (Nemo, o200k), else runs of `word`
  bool contraction_first;       // an alternative of its own before all others
  bool contraction_after_word;  // an optional suffix of a word
  bool fold_contraction;        // in any case
  ClassSet word;                // not cased: the characters of a word
  ClassSet punctuation;
  int digits_max;               // 0: any number, with an optional space before (and a word too)
  bool slash_ends_punctuation;  // after a run of punctuation: [\r\n/]* instead of [\r\n]*
};

constexpr ClassSet kNotWordNumberSpace = kAll & ~(kLetters | kBit(kN) | kSpaces);

constexpr Traits TraitsOf(PatternFamily family) {
  switch (family) {
    case PatternFamily::kNemo:
      return {true, false, false, false, 0, kNotWordNumberSpace, 1, true};
    case PatternFamily::kO200k:
      return {true, false, true, true, 0, kNotWordNumberSpace, 3, true};
    case PatternFamily::kLlama3:
      return {false, true, false, true, kLetters, kNotWordNumberSpace, 3, false};
    case PatternFamily::kQwen2:
      return {false, true, false, true, kLetters, kNotWordNumberSpace, 1, false};
    case PatternFamily::kQwen35:
      return {false, true, false, true, kLetters | kBit(kM), kNotWordNumberSpace & ~kBit(kM),
              1,     false};
    default:  // kGpt2
      return {false, true, false, false, kLetters, kNotWordNumberSpace, 0, false};
  }
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : end_(text.data() + text.size()) {}

  // The class of the character at `p`, and its length.
  uint8_t At(const char* p, uint32_t& size) const {
    if (p == end_) {
      size = 0;
      return kEnd;
    }
    const uint8_t byte = static_cast<uint8_t>(*p);
    if (byte < 0x80) {
      size = 1;
      return classes_.ClassOfAscii(byte);
    }
    size_t used = 0;
    const char32_t c = NextCodePoint(std::string_view(p, end_ - p), used);
    size = static_cast<uint32_t>(used);
    return classes_.ClassOf(c);
  }

  const char* Run(const char* p, ClassSet set) const {
    uint32_t size;
    while (In(set, At(p, size))) p += size;
    return p;
  }

  // 's 't 're 've 'm 'll 'd at `p`, else `p`. Folded, U+017F counts as an s.
  const char* Contraction(const char* p, bool fold) const {
    if (end_ - p < 2 || *p != '\'') return p;
    const auto letter = [&](const char* at) {
      return fold && *at >= 'A' && *at <= 'Z' ? static_cast<char>(*at | 0x20) : *at;
    };
    const char first = letter(p + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 2;
    if (end_ - p < 3) return p;
    const char second = letter(p + 2);
    if ((first == 'r' || first == 'v') && second == 'e') return p + 3;
    if (first == 'l' && second == 'l') return p + 3;
    if (fold && first == '\xC5' && p[2] == '\xBF') return p + 3;
    return p;
  }

  // [upper]*[lower]+ or else null. Some characters are both, so the upper run may have to give back
  // all behind the last of them.
  const char* LowerEndedWord(const char* p) const {
    const char* last_both_end = nullptr;
    uint32_t size;
    uint8_t c = At(p, size);
    while (In(kUpper, c)) {
      p += size;
      if (In(kLower, c)) last_both_end = p;
      c = At(p, size);
    }
    return In(kLower, c) ? Run(p + size, kLower) : last_both_end;
  }

  // [upper]+[lower]* where LowerEndedWord fails, or else null.
  const char* UpperWord(const char* p) const {
    const char* end = Run(p, kUpper);
    return end == p ? nullptr : Run(end, kLower);
  }

  // [^\r\n\p{L}\p{N}]? and then a word by case: the alternative that ends in lower case is tried
  // with and without the prefix before the other.
  const char* CasedWord(const char* p, uint8_t c, uint32_t size) const {
    const bool may_be_prefix = In(kAll & ~(kLetters | kBit(kN) | kBit(kNewline)), c);
    const char* end = nullptr;
    if (may_be_prefix) end = LowerEndedWord(p + size);
    if (end == nullptr) end = LowerEndedWord(p);
    if (end == nullptr && may_be_prefix) end = UpperWord(p + size);
    if (end == nullptr) end = UpperWord(p);
    return end;
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+ at a white-space character; without the first if not `newlines`.
  const char* Space(const char* p, bool newlines) const {
    const char* last_newline_end = nullptr;
    const char* last = p;  // begin of the last character of the run
    const char* q = p;
    uint32_t size;
    for (uint8_t c = At(q, size); In(kSpaces, c); c = At(q, size)) {
      last = q;
      q += size;
      if (c == kNewline) last_newline_end = q;
    }
    if (newlines && last_newline_end != nullptr) return last_newline_end;
    // The last space of a run goes to what follows it.
    return q == end_ || last == p ? q : last;
  }

  template <PatternFamily kFamily>
  const char* Match(const char* p) const {
    constexpr Traits kTraits = TraitsOf(kFamily);
    uint32_t size;
    const uint8_t c = At(p, size);
    if (kTraits.contraction_first) {
      const char* end = Contraction(p, kTraits.fold_contraction);
      if (end != p) return end;
    }
    if constexpr (kFamily == PatternFamily::kGpt2) return MatchGpt2(p, c, size);
    if (kTraits.cased) {
      const char* end = c == kN || c == kNewline ? nullptr : CasedWord(p, c, size);
      if (end != nullptr) {
        return kTraits.contraction_after_word ? Contraction(end, kTraits.fold_contraction) : end;
      }
    } else {
      if (In(kTraits.word, c)) return Run(p + size, kTraits.word);
      if (In(kAll & ~(kLetters | kBit(kN) | kBit(kNewline)), c)) {
        const char* end = Run(p + size, kTraits.word);
        if (end != p + size) return end;
      }
    }
    if (c == kN) return Digits(p, kTraits.digits_max);
    const char* marks = p + (*p == ' ' ? 1 : 0);
    const char* end = Run(marks, kTraits.punctuation);
    if (end != marks) {
      while (end != end_ &&
             (*end == '\r' || *end == '\n' || (kTraits.slash_ends_punctuation && *end == '/'))) {
        ++end;
      }
      return end;
    }
    return Space(p, /*newlines=*/true);
  }

  const char* Digits(const char* p, int digits_max) const {
    uint32_t size;
    for (int i = 0; i < digits_max && At(p, size) == kN; ++i) p += size;
    return p;
  }

  //  ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  const char* MatchGpt2(const char* p, uint8_t c, uint32_t size) const {
    const char* q = p;
    if (*p == ' ') {
      ++q;
      c = At(q, size);
    }
    if (In(kLetters, c)) return Run(q + size, kLetters);
    if (c == kN) return Run(q + size, kBit(kN));
    if (In(kNotWordNumberSpace, c)) return Run(q + size, kNotWordNumberSpace);
    return Space(p, /*newlines=*/false);
  }

  const char* MatchCjkRun(const char* p) const {
    while (p != end_) {
      size_t size = 0;
      const char32_t c = NextCodePoint(std::string_view(p, end_ - p), size);
      if (!(c >= 0x4E00 && c <= 0x9FA5) && !(c >= 0x3040 && c <= 0x30FF)) break;
      p += size;
    }
    return p;
  }

  const char* MatchDeepseekV3(const char* p) const {
    constexpr ClassSet kWord = kLetters | kBit(kM);
    constexpr ClassSet kMarks = kBit(kP) | kBit(kS);
    const auto is_letter = [](char b) { return (b | 0x20) >= 'a' && (b | 0x20) <= 'z'; };
    uint32_t size;
    const uint8_t c = At(p, size);
    if (size == 1 && In(kMarks, c) && p + 1 != end_ && is_letter(p[1])) {
      const char* end = p + 1;
      while (end != end_ && is_letter(*end)) ++end;
      return end;
    }
    if (In(kWord, c)) return Run(p + size, kWord);
    if (In(kAll & ~(kLetters | kMarks | kBit(kNewline)), c)) {
      const char* end = Run(p + size, kWord);
      if (end != p + size) return end;
    }
    const char* marks = p + (*p == ' ' ? 1 : 0);
    const char* end = Run(marks, kMarks);
    if (end != marks) {
      while (end != end_ && (*end == '\r' || *end == '\n')) ++end;
      return end;
    }
    return In(kSpaces, c) ? Space(p, /*newlines=*/true) : p;
  }

 private:
  const char* end_;
  const UnicodeClasses& classes_ = UnicodeClasses::Get();
};

template <PatternFamily kFamily>
size_t ScanFamily(std::string_view text, size_t pos, uint32_t* ends, size_t count_max) {
  const Scanner scanner(text);
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* p = begin + pos;
  size_t count = 0;
  while (count < count_max && p != end) {
    p = scanner.Match<kFamily>(p);
    ends[count++] = static_cast<uint32_t>(p - begin);
  }
  return count;
}

}  // namespace

std::optional<PatternFamily> FamilyOfPattern(std::string_view regex) {
  struct Known {
    std::string_view pattern;
    PatternFamily family;
  };
  static constexpr Known kKnown[] = {
      {kNemoPattern, PatternFamily::kNemo},
      {kO200kPattern, PatternFamily::kO200k},
      {kLlama3Pattern, PatternFamily::kLlama3},
      {kQwen2Pattern, PatternFamily::kQwen2},
      {kQwen35Pattern, PatternFamily::kQwen35},
      {kGpt2Pattern, PatternFamily::kGpt2},
      {kDigits3Pattern, PatternFamily::kDigits3},
      {kCjkRunPattern, PatternFamily::kCjkRun},
      {kDeepseekV3Pattern, PatternFamily::kDeepseekV3},
  };
  for (const Known& known : kKnown) {
    if (known.pattern == regex) return known.family;
  }
  return std::nullopt;
}

size_t ScanPattern(PatternFamily family, std::string_view text, size_t pos, uint32_t* ends,
                   size_t count_max) {
  switch (family) {
    case PatternFamily::kNemo:
      return ScanFamily<PatternFamily::kNemo>(text, pos, ends, count_max);
    case PatternFamily::kO200k:
      return ScanFamily<PatternFamily::kO200k>(text, pos, ends, count_max);
    case PatternFamily::kLlama3:
      return ScanFamily<PatternFamily::kLlama3>(text, pos, ends, count_max);
    case PatternFamily::kQwen2:
      return ScanFamily<PatternFamily::kQwen2>(text, pos, ends, count_max);
    case PatternFamily::kQwen35:
      return ScanFamily<PatternFamily::kQwen35>(text, pos, ends, count_max);
    default:
      return ScanFamily<PatternFamily::kGpt2>(text, pos, ends, count_max);
  }
}

size_t MatchPattern(PatternFamily family, std::string_view text, size_t pos) {
  const Scanner scanner(text);
  const char* const p = text.data() + pos;
  switch (family) {
    case PatternFamily::kDigits3:
      return scanner.Digits(p, 3) - text.data();
    case PatternFamily::kCjkRun:
      return scanner.MatchCjkRun(p) - text.data();
    case PatternFamily::kDeepseekV3:
      return scanner.MatchDeepseekV3(p) - text.data();
    default: {
      uint32_t end = static_cast<uint32_t>(pos);
      ScanPattern(family, text, pos, &end, 1);
      return end;
    }
  }
}

}  // namespace tessera::tokenizer

#include "tokenizer/chat_template/unicode.h"

#include <algorithm>
#include <iterator>

namespace tessera::tokenizer::jinja {
namespace {

struct CodeRange {
  uint32_t first, last;
};
struct CaseRange {
  uint32_t first, last, step;
  int32_t delta;
};
struct CaseSpecial {
  uint32_t from;
  uint32_t to[3];
};

#include "tokenizer/chat_template/unicode_tables.inc"

template <size_t N>
bool InRanges(const CodeRange (&ranges)[N], uint32_t c) {
  const auto* at = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                    [](uint32_t x, const CodeRange& r) { return x < r.first; });
  return at != std::begin(ranges) && c <= (at - 1)->last;
}

template <size_t N, size_t M>
void AppendFrom(const CaseRange (&simple)[N], const CaseSpecial (&special)[M], uint32_t c,
                std::string& out) {
  const auto* s = std::lower_bound(std::begin(special), std::end(special), c,
                                   [](const CaseSpecial& x, uint32_t v) { return x.from < v; });
  if (s != std::end(special) && s->from == c) {
    for (const uint32_t to : s->to) {
      if (to != 0) AppendUtf8(to, out);
    }
    return;
  }
  const auto* r = std::upper_bound(std::begin(simple), std::end(simple), c,
                                   [](uint32_t x, const CaseRange& y) { return x < y.first; });
  if (r != std::begin(simple)) {
    --r;
    if (c <= r->last && (c - r->first) % r->step == 0) {
      AppendUtf8(static_cast<uint32_t>(static_cast<int64_t>(c) + r->delta), out);
      return;
    }
  }
  AppendUtf8(c, out);
}

// Unicode's Final_Sigma: a cased letter before, none after, ignorable characters skipped.
bool IsFinalSigma(std::string_view text, size_t at, size_t next) {
  bool before = false;
  size_t i = at;
  while (i > 0) {
    do --i;
    while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80);
    size_t j = i;
    const uint32_t c = DecodeAt(text, j);
    if (IsClass(c, CharClass::kCaseIgnorable)) continue;
    before = IsClass(c, CharClass::kCased);
    break;
  }
  if (!before) return false;
  for (size_t j = next; j < text.size();) {
    const uint32_t c = DecodeAt(text, j);
    if (IsClass(c, CharClass::kCaseIgnorable)) continue;
    return !IsClass(c, CharClass::kCased);
  }
  return true;
}

void AppendLower(std::string_view text, size_t at, size_t next, uint32_t c, std::string& out) {
  if (c == 0x3A3) {
    AppendUtf8(IsFinalSigma(text, at, next) ? 0x3C2 : 0x3C3, out);
  } else {
    AppendMapped(c, CaseMap::kLower, out);
  }
}

std::string MapAll(std::string_view text, CaseMap map) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) AppendMapped(DecodeAt(text, at), map, out);
  return out;
}

}  // namespace

uint32_t DecodeAt(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const uint32_t first = byte(at);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length <= 1) {
    ++at;
    return first;
  }
  uint32_t c = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) {
      ++at;
      return first;
    }
    c = (c << 6) | (byte(at + i) & 0x3F);
  }
  at += length;
  return c;
}

void AppendUtf8(uint32_t c, std::string& out) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (c >> 6)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (c >> 12)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (c >> 18)));
    out.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

size_t CountCodePoints(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

size_t OffsetOf(std::string_view text, size_t index) {
  size_t at = 0;
  while (index > 0 && at < text.size()) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    --index;
  }
  return at;
}

bool IsClass(uint32_t c, CharClass which) {
  switch (which) {
    case CharClass::kAlpha:
      return InRanges(kAlphaRanges, c);
    case CharClass::kDecimal:
      return InRanges(kDecimalRanges, c);
    case CharClass::kDigit:
      return InRanges(kDigitRanges, c);
    case CharClass::kNumeric:
      return InRanges(kNumericRanges, c);
    case CharClass::kLower:
      return InRanges(kLowerRanges, c);
    case CharClass::kUpper:
      return InRanges(kUpperRanges, c);
    case CharClass::kTitle:
      return InRanges(kTitleRanges, c);
    case CharClass::kPrintable:
      return InRanges(kPrintableRanges, c);
    case CharClass::kIdStart:
      return InRanges(kIdStartRanges, c);
    case CharClass::kIdContinue:
      return InRanges(kIdContinueRanges, c);
    case CharClass::kCased:
      return InRanges(kCasedRanges, c);
    case CharClass::kCaseIgnorable:
      return InRanges(kCaseIgnorableRanges, c);
  }
  return false;
}

bool IsSpace(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsLineBreak(uint32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool IsWord(uint32_t c) {
  if (c < 0x80) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  }
  return IsClass(c, CharClass::kAlpha) || IsClass(c, CharClass::kNumeric);
}

int DecimalValue(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9' ? static_cast<int>(c - '0') : -1;
  if (!InRanges(kDecimalRanges, c)) return -1;
  const auto* at = std::upper_bound(std::begin(kDecimalRanges), std::end(kDecimalRanges), c,
                                    [](uint32_t x, const CodeRange& r) { return x < r.first; });
  return static_cast<int>((c - (at - 1)->first) % 10);  // blocks of digits start at zero
}

void AppendMapped(uint32_t c, CaseMap map, std::string& out) {
  if (c < 0x80) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool upper = c >= 'A' && c <= 'Z';
    const bool up = map == CaseMap::kUpper || map == CaseMap::kTitle;
    out.push_back(static_cast<char>(up && lower ? c - 32 : !up && upper ? c + 32 : c));
    return;
  }
  switch (map) {
    case CaseMap::kUpper:
      AppendFrom(kUpperSimple, kUpperSpecial, c, out);
      break;
    case CaseMap::kLower:
      AppendFrom(kLowerSimple, kLowerSpecial, c, out);
      break;
    case CaseMap::kTitle:
      AppendFrom(kTitleSimple, kTitleSpecial, c, out);
      break;
    case CaseMap::kFold:
      AppendFrom(kFoldSimple, kFoldSpecial, c, out);
      break;
  }
}

std::string ToUpper(std::string_view text) { return MapAll(text, CaseMap::kUpper); }
std::string CaseFold(std::string_view text) { return MapAll(text, CaseMap::kFold); }

std::string ToLower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const uint32_t c = DecodeAt(text, at);
    AppendLower(text, start, at, c, out);
  }
  return out;
}

std::string ToTitle(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const uint32_t c = DecodeAt(text, at);
    if (in_word) {
      AppendLower(text, start, at, c, out);
    } else {
      AppendMapped(c, CaseMap::kTitle, out);
    }
    in_word = IsClass(c, CharClass::kCased);
  }
  return out;
}

std::string Capitalize(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const uint32_t c = DecodeAt(text, at);
    if (start == 0) {
      AppendMapped(c, CaseMap::kTitle, out);
    } else {
      AppendLower(text, start, at, c, out);
    }
  }
  return out;
}

std::string SwapCase(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const uint32_t c = DecodeAt(text, at);
    if (IsClass(c, CharClass::kUpper)) {
      AppendLower(text, start, at, c, out);
    } else if (IsClass(c, CharClass::kLower)) {
      AppendMapped(c, CaseMap::kUpper, out);
    } else {
      AppendUtf8(c, out);
    }
  }
  return out;
}

void StripRange(std::string_view text, bool left, bool right, size_t& begin, size_t& end) {
  begin = 0;
  end = text.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!IsSpace(DecodeAt(text, next))) break;
    begin = next;
  }
  while (right && end > begin) {
    size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    size_t next = last;
    if (!IsSpace(DecodeAt(text, next))) break;
    end = last;
  }
}

}  // namespace tessera::tokenizer::jinja

#include "tokenizer/vocab/utf8.h"

#include <cstring>

namespace tessera::tokenizer {

Utf8Front ReadUtf8Front(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {Utf8Front::kWhole, 1};
  // Only the second byte has a range that depends on the lead.
  uint8_t low = 0x80, high = 0xBF;
  uint8_t length;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {Utf8Front::kBroken, 1};
  }
  for (uint8_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Utf8Front::kIncomplete, i};
    if (byte(i) < low || byte(i) > high) return {Utf8Front::kBroken, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Front::kWhole, length};
}

size_t FindInvalidUtf8(std::string_view text) {
  size_t pos = 0;
  while (pos < text.size()) {
    // Eight ASCII bytes at a time.
    while (pos + 8 <= text.size()) {
      uint64_t word;
      std::memcpy(&word, text.data() + pos, 8);
      if ((word & 0x8080808080808080u) != 0) break;
      pos += 8;
    }
    if (pos == text.size()) break;
    const Utf8Front front = ReadUtf8Front(text.substr(pos, 4));
    if (front.state != Utf8Front::kWhole) return pos;
    pos += front.bytes;
  }
  return std::string_view::npos;
}

void AppendUtf8(char32_t code_point, std::string& text) {
  const auto tail = [&](int shift) {
    text.push_back(static_cast<char>(0x80 | (code_point >> shift & 0x3F)));
  };
  if (code_point < 0x80) {
    text.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    text.push_back(static_cast<char>(0xC0 | code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    text.push_back(static_cast<char>(0xE0 | code_point >> 12));
    tail(6);
    tail(0);
  } else {
    text.push_back(static_cast<char>(0xF0 | code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace tessera::tokenizer

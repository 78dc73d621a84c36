#ifndef TESSERA_TOKENIZER_VOCAB_UTF8_H_
#define TESSERA_TOKENIZER_VOCAB_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::tokenizer {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// How the bytes at the front of a text read as UTF-8 (Unicode's table of well-formed sequences: no
// overlong forms, no surrogates, nothing beyond U+10FFFF).
struct Utf8Front {
  enum State : uint8_t {
    kWhole,       // one code point of `bytes` bytes
    kIncomplete,  // all of the text is the begin of one
    kBroken,      // the first `bytes` bytes can never be part of one (a "maximal subpart")
  };
  State state;
  uint8_t bytes;
};

// `text` is not empty.
Utf8Front ReadUtf8Front(std::string_view text);

// Offset of the first byte that is not part of well-formed UTF-8, or npos. Cost: some GB/s on
// ASCII.
size_t FindInvalidUtf8(std::string_view text);

// The code point at `text[pos]`, which must begin a well-formed sequence; moves `pos` past it.
inline char32_t NextCodePoint(std::string_view text, size_t& pos) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[pos + i]); };
  const uint8_t b = byte(0);
  if (b < 0x80) return text[pos++];
  if (b < 0xE0) {
    const char32_t c = (b & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
    pos += 2;
    return c;
  }
  if (b < 0xF0) {
    const char32_t c = (b & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    pos += 3;
    return c;
  }
  const char32_t c =
      (b & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
  pos += 4;
  return c;
}

// Bytes of the sequence that the lead byte `b` begins, in well-formed UTF-8.
inline size_t Utf8Length(uint8_t b) { return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4; }

// Appends a scalar value (not a surrogate, at most U+10FFFF).
void AppendUtf8(char32_t code_point, std::string& text);

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_VOCAB_UTF8_H_

#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_UNICODE_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_UNICODE_H_

// Python's view of Unicode (version 14, as Python 3.11): code points of UTF-8 text, character
// classes and case mappings. Surrogates that a template wrote as escapes are kept as three bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::tokenizer::jinja {

inline bool IsAscii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}
// Decodes one code point at `at` and moves behind it. A byte that fits nowhere counts as one.
uint32_t DecodeAt(std::string_view text, size_t& at);
void AppendUtf8(uint32_t code_point, std::string& out);
size_t CountCodePoints(std::string_view text);
// The byte offset of code point `index`, or the size if there are fewer.
size_t OffsetOf(std::string_view text, size_t index);

enum class CharClass : uint8_t {
  kAlpha,
  kDecimal,
  kDigit,
  kNumeric,
  kLower,
  kUpper,
  kTitle,
  kPrintable,
  kIdStart,
  kIdContinue,
  kCased,
  kCaseIgnorable,
};
bool IsClass(uint32_t c, CharClass which);
bool IsSpace(uint32_t c);      // str.isspace, \s
bool IsLineBreak(uint32_t c);  // str.splitlines
bool IsWord(uint32_t c);       // \w: alphanumeric or underscore
// The value of a decimal digit of any script, or -1.
int DecimalValue(uint32_t c);

enum class CaseMap : uint8_t { kUpper, kLower, kTitle, kFold };
void AppendMapped(uint32_t c, CaseMap map, std::string& out);

std::string ToUpper(std::string_view text);
std::string ToLower(std::string_view text);  // with the final sigma rule
std::string ToTitle(std::string_view text);
std::string Capitalize(std::string_view text);
std::string SwapCase(std::string_view text);
std::string CaseFold(std::string_view text);

// Byte range of the text without outer white space.
void StripRange(std::string_view text, bool left, bool right, size_t& begin, size_t& end);

}  // namespace tessera::tokenizer::jinja

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_UNICODE_H_

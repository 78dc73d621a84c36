#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_TEXT_FORMAT_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_TEXT_FORMAT_H_

// How Python prints: floats, strings, format specifications.

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::tokenizer::jinja {

// repr(float): the shortest digits that read back the same.
std::string FloatText(double value);
// repr(str): quotes chosen, unprintable characters escaped.
std::string ReprText(std::string_view text);
// '%.{precision}{type}' for the types e, f, g and their capitals; `alternate` is the # flag.
std::string FloatWithPrecision(double value, char type, int precision, bool alternate);
bool IsIdentifier(std::string_view text);

// A format specification: [[fill]align][sign][z][#][0][width][,][.precision][type]
struct FormatSpec {
  uint32_t fill = ' ';
  char align = 0;  // 0, '<', '>', '=', '^'
  char sign = '-';
  bool alternate = false;
  bool zero = false;  // a 0 before the width
  int64_t width = -1;
  char grouping = 0;
  int64_t precision = -1;
  char type = 0;
};

// "" or Python's message.
std::string ParseFormatSpec(std::string_view text, FormatSpec& spec);
// Puts `text` (of a number: sign, then digits) into the width of the spec.
std::string Pad(std::string_view text, const FormatSpec& spec, char default_align);
// Thousands separators into the digits before the point.
std::string Grouped(std::string_view digits, char separator, int group);

}  // namespace tessera::tokenizer::jinja

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_TEXT_FORMAT_H_

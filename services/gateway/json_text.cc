#include "services/gateway/json_text.h"

#include <charconv>
#include <cmath>
#include <cstddef>

namespace tessera::gateway {
namespace {

constexpr float kLogprobBound = 9999.0f;

bool IsContinuation(unsigned char c) { return (c & 0xc0) == 0x80; }

// Length of the valid UTF-8 sequence at the start of `text` (its first byte is not ASCII), or 0.
size_t SequenceBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(byte(i))) return 0;
  }
  // Overlong forms, surrogates and what lies above U+10FFFF.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

void AppendEscape(std::string& out, unsigned char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
  }
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  size_t copied = 0;
  size_t i = 0;
  while (i < text.size()) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
      ++i;
      continue;
    }
    if (c >= 0x80) {
      const size_t length = SequenceBytes(text.substr(i));
      if (length != 0) {
        i += length;
        continue;
      }
    }
    out.append(text, copied, i - copied);
    if (c >= 0x80) {
      out += "\xef\xbf\xbd";
    } else {
      AppendEscape(out, c);
    }
    copied = ++i;
  }
  out.append(text, copied, text.size() - copied);
  out += '"';
}

void AppendJsonFloat(std::string& out, float value) {
  if (!(value > -kLogprobBound)) value = -kLogprobBound;  // NaN too
  if (value > kLogprobBound) value = kLogprobBound;
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
  const std::string_view text(digits, static_cast<size_t>(end.ptr - digits));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

void AppendJsonInteger(std::string& out, int64_t value) {
  char digits[24];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
  out.append(digits, static_cast<size_t>(end.ptr - digits));
}

}  // namespace tessera::gateway

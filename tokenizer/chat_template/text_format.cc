#include "tokenizer/chat_template/text_format.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tokenizer/chat_template/unicode.h"

namespace tessera::tokenizer::jinja {

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  const bool negative = text[0] == '-';
  const size_t e = text.find('e');
  std::string digits;
  for (const char c : text.substr(negative ? 1 : 0, e - (negative ? 1 : 0))) {
    if (c != '.') digits.push_back(c);
  }
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string out = negative ? "-" : "";
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (count > 1) out += "." + digits.substr(1);
    const int magnitude = std::abs(exponent);
    out += exponent < 0 ? "e-" : "e+";
    if (magnitude < 10) out += "0";
    return out + std::to_string(magnitude);
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1) {
    return out + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  }
  const size_t whole = static_cast<size_t>(exponent) + 1;
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string ReprText(std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos;
  const char quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  out.reserve(text.size() + 2);
  const auto hex = [&out](char mark, int width, uint32_t c) {
    out.push_back('\\');
    out.push_back(mark);
    for (int i = width - 1; i >= 0; --i) out.push_back("0123456789abcdef"[(c >> (4 * i)) & 15]);
  };
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const uint32_t c = DecodeAt(text, at);
    if (c == static_cast<uint32_t>(quote) || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (c < 0x20 || c == 0x7F) {
      hex('x', 2, c);
    } else if (c < 0x7F || IsClass(c, CharClass::kPrintable)) {
      out.append(text.substr(start, at - start));
    } else if (c < 0x100) {
      hex('x', 2, c);
    } else if (c < 0x10000) {
      hex('u', 4, c);
    } else {
      hex('U', 8, c);
    }
  }
  out.push_back(quote);
  return out;
}

std::string FloatWithPrecision(double value, char type, int precision, bool alternate) {
  if (std::isnan(value)) return type >= 'a' ? "nan" : "NAN";
  if (std::isinf(value)) {
    const std::string text = type >= 'a' ? "inf" : "INF";
    return value < 0 ? "-" + text : text;
  }
  const char format[] = {'%',
                         alternate ? '#' : '.',
                         alternate ? '.' : '*',
                         alternate ? '*' : type,
                         alternate ? type : '\0',
                         '\0'};
  const int size = std::snprintf(nullptr, 0, format, precision, value);
  std::string out(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(out.data(), out.size(), format, precision, value);
  out.pop_back();
  return out;
}

bool IsIdentifier(std::string_view text) {
  if (text.empty()) return false;
  for (size_t at = 0; at < text.size();) {
    const bool first = at == 0;
    const uint32_t c = DecodeAt(text, at);
    if (c == '_') continue;
    if (!IsClass(c, first ? CharClass::kIdStart : CharClass::kIdContinue)) return false;
  }
  return true;
}

std::string ParseFormatSpec(std::string_view text, FormatSpec& spec) {
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '=' || c == '^'; };
  size_t at = 0;
  size_t next = 0;
  bool filled = false;
  if (!text.empty()) {
    const uint32_t c = DecodeAt(text, next);
    if (next < text.size() && is_align(text[next])) {
      spec.fill = c;
      spec.align = text[next];
      at = next + 1;
      filled = true;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }
  const auto peek = [&]() { return at < text.size() ? text[at] : '\0'; };
  const auto number = [&](int64_t& n) {
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
      n = (n < 0 ? 0 : n) * 10 + (text[at++] - '0');
      if (n > INT32_MAX) return false;
    }
    return true;
  };
  if (peek() == '+' || peek() == '-' || peek() == ' ') spec.sign = text[at++];
  if (peek() == 'z') ++at;
  if (peek() == '#') {
    spec.alternate = true;
    ++at;
  }
  if (!filled && peek() == '0') {
    spec.zero = true;
    spec.fill = '0';
    if (spec.align == 0) spec.align = '=';
    ++at;
  }
  if (!number(spec.width)) return "Too many decimal digits in format string";
  if (peek() == ',' || peek() == '_') {
    spec.grouping = text[at++];
    if (peek() == ',' || peek() == '_') {
      return spec.grouping == peek()
                 ? std::string("Cannot specify '") + peek() + "' with '" + peek() + "'."
                 : "Cannot specify both ',' and '_'.";
    }
  }
  if (peek() == '.') {
    ++at;
    if (peek() < '0' || peek() > '9') return "Format specifier missing precision";
    if (!number(spec.precision)) return "Too many decimal digits in format string";
  }
  if (at + 1 < text.size()) return "Invalid format specifier";
  if (at < text.size()) spec.type = text[at];
  return "";
}

std::string Pad(std::string_view text, const FormatSpec& spec, char default_align) {
  const size_t length = CountCodePoints(text);
  if (spec.width < 0 || length >= static_cast<size_t>(spec.width)) return std::string(text);
  const size_t missing = static_cast<size_t>(spec.width) - length;
  const char align = spec.align != 0 ? spec.align : default_align;
  size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string out;
  size_t sign = 0;
  if (align == '=') {
    if (!text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ')) sign = 1;
    if (spec.alternate && text.size() > sign + 1 && text[sign] == '0' &&
        std::string_view("xXbo").find(text[sign + 1]) != std::string_view::npos) {
      sign += 2;
    }
    out.append(text.substr(0, sign));
  }
  for (size_t i = 0; i < left; ++i) AppendUtf8(spec.fill, out);
  out.append(text.substr(sign));
  for (size_t i = left; i < missing; ++i) AppendUtf8(spec.fill, out);
  return out;
}

std::string Grouped(std::string_view digits, char separator, int group) {
  size_t whole = 0;
  while (whole < digits.size() && std::isxdigit(static_cast<unsigned char>(digits[whole]))) ++whole;
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i != 0 && (whole - i) % static_cast<size_t>(group) == 0) out.push_back(separator);
    out.push_back(digits[i]);
  }
  out.append(digits.substr(whole));
  return out;
}

}  // namespace tessera::tokenizer::jinja

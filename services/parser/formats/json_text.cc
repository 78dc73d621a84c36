#include "services/parser/formats/json_text.h"

#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/charconv.h"
#include "services/parser/formats/text_buffer.h"

namespace tessera::parser {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (code >> 6)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | (code >> 12)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | (code >> 18)));
    out->push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

// One character given by its number, as the inside of a JSON string. A lone surrogate has no UTF-8
// and stays an escape.
void AppendEscapedCode(uint32_t code, std::string* out) {
  if (code >= 0xD800 && code <= 0xDFFF) {
    constexpr char kHex[] = "0123456789abcdef";
    out->append("\\u");
    for (int shift = 12; shift >= 0; shift -= 4) out->push_back(kHex[(code >> shift) & 15]);
    return;
  }
  std::string utf8;
  AppendUtf8(code, &utf8);
  AppendJsonEscaped(utf8, out);
}

bool IsFinite(std::string_view text) {
  double value = 0;
  const absl::from_chars_result result =
      absl::from_chars(text.data(), text.data() + text.size(), value);
  // Out of range is either too large (the value is huge) or too small (nearly 0, which is fine).
  return result.ec == std::errc() ||
         (result.ec == std::errc::result_out_of_range && std::fabs(value) < 1.0);
}

// A cursor over one text in one of two dialects, writing JSON as it goes.
class LiteralReader {
 public:
  LiteralReader(std::string_view text, bool python) : text_(text), python_(python) {}

  std::optional<JsonValue> Read() {
    SkipSpace();
    JsonValue value;
    if (!ReadValue(/*depth=*/0, &value.kind)) return std::nullopt;
    SkipSpace();
    if (at_ != text_.size()) return std::nullopt;
    value.text = std::move(out_);
    return value;
  }

 private:
  struct Member {
    size_t key_begin, key_end, value_begin, value_end;  // in out_
  };

  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool Take(char c) {
    if (AtEnd() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void SkipSpace() {
    while (!AtEnd() && IsSpace(text_[at_])) ++at_;
  }

  bool ReadValue(int depth, JsonKind* kind);
  bool ReadObject(int depth);
  bool ReadArray(int depth, char close);
  bool ReadWord(JsonKind* kind);
  bool ReadNumber(JsonKind* kind);
  bool ReadPythonNumber(JsonKind* kind);
  bool ReadKey();
  bool ReadJsonString();
  bool AtPythonString() const;
  bool ReadPythonStrings();
  bool ReadPythonString();
  bool ReadPythonEscape();
  bool ReadHex(int digits, uint32_t* code);
  void DropDoubledKeys(size_t begin, const std::vector<Member>& members);

  const std::string_view text_;
  const bool python_;
  size_t at_ = 0;
  std::string out_;
};

bool LiteralReader::ReadValue(int depth, JsonKind* kind) {
  if (AtEnd() || depth > kValueNestingMax) return false;
  const char c = Peek();
  if (c == '{') {
    *kind = JsonKind::kObject;
    ++at_;
    return ReadObject(depth);
  }
  if (c == '[' || (python_ && c == '(')) {
    *kind = JsonKind::kArray;
    ++at_;
    return ReadArray(depth, c == '[' ? ']' : ')');
  }
  if (depth == 0 && python_) return false;
  if (python_ && AtPythonString()) {
    *kind = JsonKind::kString;
    return ReadPythonStrings();
  }
  if (!python_ && c == '"') {
    *kind = JsonKind::kString;
    return ReadJsonString();
  }
  if (ReadWord(kind)) return true;
  return python_ ? ReadPythonNumber(kind) : ReadNumber(kind);
}

bool LiteralReader::ReadWord(JsonKind* kind) {
  struct Word {
    std::string_view json, python;
    JsonKind kind;
  };
  static constexpr Word kWords[] = {{"null", "None", JsonKind::kNull},
                                    {"true", "True", JsonKind::kBoolean},
                                    {"false", "False", JsonKind::kBoolean}};
  for (const Word& word : kWords) {
    if (!TakeWord(python_ ? word.python : word.json)) continue;
    out_.append(word.json);
    *kind = word.kind;
    return true;
  }
  return false;
}

bool LiteralReader::ReadNumber(JsonKind* kind) {
  const size_t begin = at_;
  Take('-');
  const size_t digits = at_;
  while (IsDigit(Peek())) ++at_;
  if (at_ == digits || (text_[digits] == '0' && at_ - digits > 1)) return false;
  *kind = JsonKind::kInteger;
  if (Peek() == '.') {
    *kind = JsonKind::kNumber;
    ++at_;
    if (!IsDigit(Peek())) return false;
    while (IsDigit(Peek())) ++at_;
  }
  if (Peek() == 'e' || Peek() == 'E') {
    *kind = JsonKind::kNumber;
    ++at_;
    if (Peek() == '+' || Peek() == '-') ++at_;
    if (!IsDigit(Peek())) return false;
    while (IsDigit(Peek())) ++at_;
  }
  const std::string_view lexeme = text_.substr(begin, at_ - begin);
  if (*kind == JsonKind::kNumber && !IsFinite(lexeme)) return false;
  out_.append(lexeme);
  return true;
}

bool LiteralReader::ReadPythonNumber(JsonKind* kind) {
  const size_t begin = at_;
  while (!AtEnd()) {
    const char c = Peek();
    const bool after_e = at_ > begin && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
    const bool sign = (c == '+' || c == '-') && (at_ == begin || after_e);
    if (!IsDigit(c) && c != '.' && c != 'e' && c != 'E' && !sign) break;
    ++at_;
  }
  const std::string_view lexeme = text_.substr(begin, at_ - begin);
  std::optional<std::string> number = ReadInteger(lexeme);
  *kind = JsonKind::kInteger;
  if (!number.has_value()) {
    number = ReadDecimal(lexeme);
    *kind = JsonKind::kNumber;
  }
  if (!number.has_value()) return false;
  out_.append(*number);
  return true;
}

bool LiteralReader::ReadArray(int depth, char close) {
  out_.push_back('[');
  bool comma = true;  // a value may stand here
  for (size_t count = 0;; ++count) {
    SkipSpace();
    if (Take(close)) {
      // A comma before the end is Python's; "(1)" without one is no tuple.
      if (count > 0 && comma && !python_) return false;
      if (close == ')' && count == 1 && !comma) return false;
      out_.push_back(']');
      return true;
    }
    if (!comma) return false;
    if (count > 0) out_.append(", ");
    JsonKind kind;
    if (!ReadValue(depth + 1, &kind)) return false;
    SkipSpace();
    comma = Take(',');
  }
}

bool LiteralReader::ReadObject(int depth) {
  const size_t begin = out_.size();
  out_.push_back('{');
  std::vector<Member> members;
  bool comma = true;
  while (true) {
    SkipSpace();
    if (Take('}')) {
      if (!members.empty() && comma && !python_) return false;
      out_.push_back('}');
      DropDoubledKeys(begin, members);
      return true;
    }
    if (!comma) return false;
    if (!members.empty()) out_.append(", ");
    Member member;
    member.key_begin = out_.size();
    if (!ReadKey()) return false;
    member.key_end = out_.size();
    SkipSpace();
    if (!Take(':')) return false;
    out_.append(": ");
    SkipSpace();
    member.value_begin = out_.size();
    JsonKind kind;
    if (!ReadValue(depth + 1, &kind)) return false;
    member.value_end = out_.size();
    members.push_back(member);
    SkipSpace();
    comma = Take(',');
  }
}

// A dict's keys may be numbers, booleans and None; JSON's are strings, so they are quoted.
bool LiteralReader::ReadKey() {
  if (!python_) return Peek() == '"' && ReadJsonString();
  if (AtPythonString()) return ReadPythonStrings();
  if (Peek() == '{' || Peek() == '[' || Peek() == '(') return false;
  JsonKind kind;
  out_.push_back('"');
  if (!ReadWord(&kind) && !ReadPythonNumber(&kind)) return false;
  out_.push_back('"');
  return true;
}

// Rebuilds the object written from `begin` on if it holds a key twice.
void LiteralReader::DropDoubledKeys(size_t begin, const std::vector<Member>& members) {
  std::map<std::string_view, size_t> places;  // key -> index in `kept`
  std::vector<const Member*> kept;
  const std::string_view out = out_;
  for (const Member& member : members) {
    const std::string_view key = out.substr(member.key_begin, member.key_end - member.key_begin);
    const auto [place, added] = places.emplace(key, kept.size());
    if (added) {
      kept.push_back(&member);
    } else {
      kept[place->second] = &member;
    }
  }
  if (kept.size() == members.size()) return;
  std::string object = "{";
  for (const Member* member : kept) {
    if (object.size() > 1) object.append(", ");
    object.append(out.substr(member->key_begin, member->value_end - member->key_begin));
  }
  object.push_back('}');
  out_.replace(begin, std::string::npos, object);
}

bool LiteralReader::ReadHex(int digits, uint32_t* code) {
  *code = 0;
  for (int i = 0; i < digits; ++i) {
    const int value = HexValue(Peek());
    if (value < 0) return false;
    *code = *code * 16 + static_cast<uint32_t>(value);
    ++at_;
  }
  return true;
}

bool LiteralReader::ReadJsonString() {
  ++at_;  // the quote
  out_.push_back('"');
  while (true) {
    const size_t plain = at_;
    while (!AtEnd() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<unsigned char>(text_[at_]) >= 0x20) {
      ++at_;
    }
    out_.append(text_.substr(plain, at_ - plain));
    if (Take('"')) break;
    if (!Take('\\')) return false;
    const char c = Peek();
    ++at_;
    if (c == 'u') {
      uint32_t code;
      if (!ReadHex(4, &code)) return false;
      const size_t after_first = at_;
      uint32_t low;
      if (code >= 0xD800 && code <= 0xDBFF && TakeWord("\\u") && ReadHex(4, &low) &&
          low >= 0xDC00 && low <= 0xDFFF) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else {
        at_ = after_first;
      }
      AppendEscapedCode(code, &out_);
    } else if (c == '/') {
      out_.push_back('/');
    } else if (c != '\0' && std::string_view("\"\\bfnrt").find(c) != std::string_view::npos) {
      out_.push_back('\\');
      out_.push_back(c);
    } else {
      return false;
    }
  }
  out_.push_back('"');
  return true;
}

bool LiteralReader::AtPythonString() const {
  const char c = Peek();
  const bool prefix = c == 'r' || c == 'R' || c == 'u' || c == 'U';
  const char quote = prefix ? Peek(1) : c;
  return quote == '"' || quote == '\'';
}

// One string or several side by side, which Python joins.
bool LiteralReader::ReadPythonStrings() {
  out_.push_back('"');
  while (AtPythonString()) {
    if (!ReadPythonString()) return false;
    SkipSpace();
  }
  out_.push_back('"');
  return true;
}

// REQUIRES: AtPythonString().
bool LiteralReader::ReadPythonString() {
  const bool raw = Peek() == 'r' || Peek() == 'R';
  if (Peek() != '"' && Peek() != '\'') ++at_;
  const char quote = Peek();
  const std::string triple(3, quote);
  const bool is_triple = TakeWord(triple);
  if (!is_triple) ++at_;
  while (!AtEnd()) {
    const char c = text_[at_];
    if (is_triple ? TakeWord(triple) : Take(quote)) return true;
    if (c == '\n' && !is_triple) return false;
    if (c != '\\') {
      size_t plain = at_ + 1;
      while (plain < text_.size() && text_[plain] != quote && text_[plain] != '\\' &&
             text_[plain] != '\n') {
        ++plain;
      }
      AppendJsonEscaped(text_.substr(at_, plain - at_), &out_);
      at_ = plain;
    } else if (raw) {
      out_.append("\\\\");
      ++at_;
      // In a raw string a backslash keeps the quote behind it from ending the string.
      if (Peek() == quote || Peek() == '\\') {
        AppendJsonEscaped(text_.substr(at_, 1), &out_);
        ++at_;
      }
    } else if (!ReadPythonEscape()) {
      return false;
    }
  }
  return false;
}

bool LiteralReader::ReadPythonEscape() {
  ++at_;  // the backslash
  if (AtEnd()) return false;
  const char c = text_[at_++];
  uint32_t code = 0;
  switch (c) {
    case '\n':
      return true;  // a line continued
    case '\\':
    case '\'':
    case '"':
      code = static_cast<unsigned char>(c);
      break;
    case 'a':
      code = 7;
      break;
    case 'b':
      code = 8;
      break;
    case 'f':
      code = 12;
      break;
    case 'n':
      code = 10;
      break;
    case 'r':
      code = 13;
      break;
    case 't':
      code = 9;
      break;
    case 'v':
      code = 11;
      break;
    case 'x':
    case 'u':
    case 'U':
      if (!ReadHex(c == 'x' ? 2 : c == 'u' ? 4 : 8, &code) || code > 0x10FFFF) return false;
      break;
    case 'N':
      return false;  // a character by its name: no table of names here
    default:
      if (c >= '0' && c <= '7') {
        code = static_cast<uint32_t>(c - '0');
        for (int i = 0; i < 2 && Peek() >= '0' && Peek() <= '7'; ++i) {
          code = code * 8 + static_cast<uint32_t>(text_[at_++] - '0');
        }
        break;
      }
      out_.append("\\\\");  // an unknown escape stands for itself
      --at_;
      return true;
  }
  AppendEscapedCode(code, &out_);
  return true;
}

}  // namespace

void AppendJsonEscaped(std::string_view text, std::string* out) {
  constexpr char kHex[] = "0123456789abcdef";
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out->append(text.substr(plain, i - plain));
    plain = i + 1;
    out->push_back('\\');
    switch (c) {
      case '"':
      case '\\':
        out->push_back(static_cast<char>(c));
        break;
      case '\n':
        out->push_back('n');
        break;
      case '\r':
        out->push_back('r');
        break;
      case '\t':
        out->push_back('t');
        break;
      case '\b':
        out->push_back('b');
        break;
      case '\f':
        out->push_back('f');
        break;
      default:
        out->append("u00");
        out->push_back(kHex[c >> 4]);
        out->push_back(kHex[c & 15]);
    }
  }
  out->append(text.substr(plain));
}

std::optional<JsonValue> ReadJson(std::string_view text) {
  return LiteralReader(text, /*python=*/false).Read();
}

std::optional<JsonValue> ReadPythonLiteral(std::string_view text) {
  return LiteralReader(text, /*python=*/true).Read();
}

std::optional<std::string> ReadInteger(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  while (text.size() > 1 && text[0] == '0') text.remove_prefix(1);
  std::string integer(text);
  return negative && integer != "0" ? "-" + integer : integer;
}

std::optional<std::string> ReadDecimal(std::string_view text) {
  std::string out;
  size_t at = 0;
  const auto digits = [&] {
    const size_t begin = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return text.substr(begin, at - begin);
  };
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    if (text[at] == '-') out.push_back('-');
    ++at;
  }
  std::string_view whole = digits();
  const bool any_whole = !whole.empty();
  while (whole.size() > 1 && whole[0] == '0') whole.remove_prefix(1);
  out.append(any_whole ? whole : "0");
  bool decimal = false;
  if (at < text.size() && text[at] == '.') {
    decimal = true;
    ++at;
    const std::string_view fraction = digits();
    if (!any_whole && fraction.empty()) return std::nullopt;
    out.push_back('.');
    out.append(fraction.empty() ? "0" : fraction);
  } else if (!any_whole) {
    return std::nullopt;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    decimal = true;
    out.push_back('e');
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) out.push_back(text[at++]);
    const std::string_view exponent = digits();
    if (exponent.empty()) return std::nullopt;
    out.append(exponent);
  }
  if (!decimal || at != text.size() || !IsFinite(out)) return std::nullopt;
  return out;
}

}  // namespace tessera::parser

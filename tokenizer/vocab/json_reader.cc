#include "tokenizer/vocab/json_reader.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "tokenizer/vocab/utf8.h"

namespace tessera::tokenizer {

bool JsonReader::Fail(std::string_view message) {
  if (status_.ok()) {
    status_ =
        absl::InvalidArgumentError(absl::StrCat(std::string(message), " (JSON, byte ", pos_, ")"));
  }
  return false;
}

void JsonReader::SkipSpace() {
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
    ++pos_;
  }
}

JsonReader::Kind JsonReader::Peek() {
  SkipSpace();
  if (!ok() || pos_ == text_.size()) return Kind::kNone;
  const char c = text_[pos_];
  switch (c) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 't':
    case 'f':
      return Kind::kBool;
    case 'n':
      return Kind::kNull;
    default:
      return c == '-' || (c >= '0' && c <= '9') ? Kind::kNumber : Kind::kNone;
  }
}

bool JsonReader::Expect(char c, std::string_view what) {
  SkipSpace();
  if (!ok()) return false;
  if (pos_ == text_.size())
    return Fail(absl::StrCat("the text ends where ", std::string(what), " should be"));
  if (text_[pos_] != c) return Fail(absl::StrCat("expected ", std::string(what)));
  ++pos_;
  return true;
}

bool JsonReader::Enter(char open, std::string_view what) {
  if (!Expect(open, what)) return false;
  if (depth_ + 1 >= kJsonDepthMax) return Fail(absl::StrCat("nested deeper than ", kJsonDepthMax));
  ++depth_;
  begun_ &= ~(uint64_t{1} << depth_);
  return true;
}

bool JsonReader::EnterObject() { return Enter('{', "an object"); }
bool JsonReader::EnterArray() { return Enter('[', "an array"); }

// Moves to the next item of the container entered last, over a comma where one belongs, or out of
// the container.
bool JsonReader::NextItem(char close, bool& has_item) {
  has_item = false;
  SkipSpace();
  if (!ok()) return false;
  if (depth_ == 0) return Fail("no container was entered");
  const uint64_t bit = uint64_t{1} << depth_;
  if (pos_ < text_.size() && text_[pos_] == close) {
    ++pos_;
    --depth_;
    return true;
  }
  if ((begun_ & bit) != 0 && !Expect(',', "a comma or the end")) return false;
  begun_ |= bit;
  has_item = true;
  return true;
}

bool JsonReader::NextKey(std::string& key) {
  bool has_item;
  if (!NextItem('}', has_item) || !has_item) return false;
  return ReadString(key) && Expect(':', "a colon");
}

bool JsonReader::NextElement() {
  bool has_item;
  if (!NextItem(']', has_item) || !has_item) return false;
  SkipSpace();
  // "[1,]" has no element after the comma.
  if (Peek() == Kind::kNone) return Fail("expected a value");
  return true;
}

bool JsonReader::ReadHex4(uint32_t& value) {
  if (text_.size() - pos_ < 4) return Fail("an escape is cut off");
  value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = text_[pos_];
    uint32_t digit;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      digit = (c | 0x20) - 'a' + 10;
    } else {
      return Fail("an escape is not hexadecimal");
    }
    value = value << 4 | digit;
    ++pos_;
  }
  return true;
}

// After the backslash.
bool JsonReader::ReadEscape(std::string& value) {
  if (pos_ == text_.size()) return Fail("a string is cut off");
  switch (const char c = text_[pos_++]; c) {
    case '"':
    case '\\':
    case '/':
      value.push_back(c);
      return true;
    case 'b':
      value.push_back('\b');
      return true;
    case 'f':
      value.push_back('\f');
      return true;
    case 'n':
      value.push_back('\n');
      return true;
    case 'r':
      value.push_back('\r');
      return true;
    case 't':
      value.push_back('\t');
      return true;
    case 'u':
      break;
    default:
      return Fail("unknown escape in a string");
  }
  uint32_t code;
  if (!ReadHex4(code)) return false;
  if (code >= 0xDC00 && code < 0xE000) return Fail("a low surrogate stands alone");
  if (code >= 0xD800 && code < 0xDC00) {
    uint32_t low;
    if (text_.substr(pos_, 2) != "\\u") return Fail("a high surrogate stands alone");
    pos_ += 2;
    if (!ReadHex4(low)) return false;
    if (low < 0xDC00 || low >= 0xE000) return Fail("a high surrogate stands alone");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  AppendUtf8(code, value);
  return true;
}

bool JsonReader::ReadString(std::string& value) {
  value.clear();
  if (!Expect('"', "a string")) return false;
  while (true) {
    const size_t begin = pos_;
    while (pos_ < text_.size() && text_[pos_] != '"' && text_[pos_] != '\\' &&
           static_cast<uint8_t>(text_[pos_]) >= 0x20) {
      ++pos_;
    }
    value.append(text_.substr(begin, pos_ - begin));
    if (pos_ == text_.size()) return Fail("a string is cut off");
    const char c = text_[pos_];
    if (c == '"') {
      ++pos_;
      return true;
    }
    if (c != '\\') return Fail("a control character stands in a string");
    ++pos_;
    if (!ReadEscape(value)) return false;
  }
}

std::string_view JsonReader::NumberText() {
  SkipSpace();
  size_t end = pos_;
  while (end < text_.size() &&
         (std::string_view("+-.eE").find(text_[end]) != std::string_view::npos ||
          (text_[end] >= '0' && text_[end] <= '9'))) {
    ++end;
  }
  return text_.substr(pos_, end - pos_);
}

bool JsonReader::ReadNumber(double& value) {
  if (!ok()) return false;
  const std::string_view number = NumberText();
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (number.empty() || number[0] == '+' || error != std::errc() ||
      end != number.data() + number.size()) {
    return Fail("expected a number");
  }
  pos_ += number.size();
  return true;
}

bool JsonReader::ReadUnsigned(uint64_t max, uint64_t& value) {
  if (!ok()) return false;
  const std::string_view number = NumberText();
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (number.empty() || error != std::errc() || end != number.data() + number.size() ||
      value > max) {
    return Fail(absl::StrCat("expected a whole number from 0 to ", max));
  }
  pos_ += number.size();
  return true;
}

bool JsonReader::ReadBool(bool& value) {
  if (Peek() != Kind::kBool) return Fail("expected true or false");
  value = text_[pos_] == 't';
  return SkipLiteral(value ? "true" : "false");
}

bool JsonReader::SkipLiteral(std::string_view literal) {
  if (text_.substr(pos_, literal.size()) != literal) return Fail("unknown literal");
  pos_ += literal.size();
  return true;
}

// At the opening quote. The escapes are checked when the string is read.
bool JsonReader::SkipString() {
  ++pos_;
  while (pos_ < text_.size()) {
    const char c = text_[pos_++];
    if (c == '"') return true;
    if (c == '\\') ++pos_;
  }
  pos_ = text_.size();
  return Fail("a string is cut off");
}

bool JsonReader::Skip(std::string_view* raw) {
  SkipSpace();
  const size_t begin = pos_;
  std::string closers;  // of the containers that are open
  do {
    SkipSpace();
    if (!ok()) return false;
    if (!closers.empty() && pos_ < text_.size()) {
      if (text_[pos_] == closers.back()) {
        closers.pop_back();
        ++pos_;
        continue;
      }
      if (text_[pos_] == ',' || text_[pos_] == ':') {
        ++pos_;
        continue;
      }
    }
    switch (Peek()) {
      case Kind::kObject:
        closers.push_back('}');
        ++pos_;
        break;
      case Kind::kArray:
        closers.push_back(']');
        ++pos_;
        break;
      case Kind::kString:
        if (!SkipString()) return false;
        break;
      case Kind::kNumber:
        pos_ += NumberText().size();
        break;
      case Kind::kBool:
        if (!SkipLiteral(text_[pos_] == 't' ? "true" : "false")) return false;
        break;
      case Kind::kNull:
        if (!SkipLiteral("null")) return false;
        break;
      case Kind::kNone:
        return Fail("expected a value");
    }
    if (depth_ + static_cast<int>(closers.size()) >= kJsonDepthMax) {
      return Fail(absl::StrCat("nested deeper than ", kJsonDepthMax));
    }
  } while (!closers.empty());
  if (raw != nullptr) *raw = text_.substr(begin, pos_ - begin);
  return true;
}

bool JsonReader::AtEnd() {
  SkipSpace();
  return pos_ == text_.size();
}

}  // namespace tessera::tokenizer

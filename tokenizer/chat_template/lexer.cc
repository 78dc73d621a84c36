#include "tokenizer/chat_template/lexer.h"

#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/big_int.h"
#include "tokenizer/chat_template/text_format.h"
#include "tokenizer/chat_template/unicode.h"

namespace tessera::tokenizer::jinja {
namespace {

// CRLF and CR become LF; one newline at the end is dropped.
std::string Normalize(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text.push_back(source[i]);
      continue;
    }
    text.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Digits with single underscores between them; the end, or `at` if there is none.
size_t DigitRun(std::string_view s, size_t at) {
  size_t i = at;
  if (i >= s.size() || !IsDigit(s[i])) return at;
  while (i < s.size() && IsDigit(s[i])) {
    ++i;
    if (i + 1 < s.size() && s[i] == '_' && IsDigit(s[i + 1])) ++i;
  }
  return i;
}

std::string WithoutUnderscores(std::string_view s) {
  std::string out;
  for (const char c : s) {
    if (c != '_') out.push_back(c);
  }
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, Arena& arena) : source_(Normalize(source)), arena_(arena) {}

  std::vector<Token> Run() {
    while (!failed_ && at_ < source_.size()) Root();
    if (!failed_) Push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  enum class Tag { kVariable, kBlock };

  void Push(TokenKind kind, std::string text) {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.column = static_cast<int>(at_ - line_start_) + 1;
    token.text = std::move(text);
    tokens_.push_back(std::move(token));
  }
  void Fail(std::string message) {
    failed_ = true;
    Push(TokenKind::kError, std::move(message));
  }
  // Moves on and counts lines.
  void MoveTo(size_t to) {
    for (; at_ < to; ++at_) {
      if (source_[at_] == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      }
    }
  }
  bool At(size_t at, std::string_view what) const {
    return source_.compare(at, what.size(), what) == 0;
  }
  size_t SkipSpace(size_t at) const {
    while (at < source_.size()) {
      size_t next = at;
      if (!IsSpace(DecodeAt(source_, next))) break;
      at = next;
    }
    return at;
  }

  // "raw" after a block start: the end of its tag, or npos.
  size_t RawTagEnd(size_t at) const {
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) ++at;
    at = SkipSpace(at);
    if (!At(at, "raw")) return std::string::npos;
    at = SkipSpace(at + 3);
    if (At(at, "-%}")) return SkipSpace(at + 3);
    if (At(at, "%}")) return at + 2;
    return std::string::npos;
  }

  // The text before a tag whose sign is `sign`, with the blanks taken off that the settings say.
  std::string_view Stripped(std::string_view text, char sign, bool variable) const {
    if (sign == '-') {
      size_t begin = 0, end = 0;
      StripRange(text, false, true, begin, end);
      return text.substr(0, end);
    }
    if (sign == '+' || variable) return text;
    const size_t newline = text.rfind('\n');
    const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    if (start == 0 && !line_starting_) return text;
    size_t begin = 0, end = 0;
    StripRange(text.substr(start), true, false, begin, end);
    return begin == end ? text.substr(0, start) : text;
  }

  void Data(std::string_view text) {
    if (!text.empty()) Push(TokenKind::kData, std::string(text));
  }
  // After a tag: where the next text starts, with line_starting_ as Jinja sets it.
  void Ended(size_t end) {
    MoveTo(end);
    line_starting_ = end > 0 && source_[end - 1] == '\n';
  }

  void Root() {
    size_t open = at_;
    while (true) {
      open = source_.find('{', open);
      if (open == std::string::npos || open + 1 >= source_.size()) {
        Data(std::string_view(source_).substr(at_));
        MoveTo(source_.size());
        return;
      }
      const char c = source_[open + 1];
      if (c == '{' || c == '%' || c == '#') break;
      ++open;
    }
    const char type = source_[open + 1];
    const char next = open + 2 < source_.size() ? source_[open + 2] : ' ';
    const char sign = next == '-' || next == '+' ? next : ' ';
    const std::string_view before = std::string_view(source_).substr(at_, open - at_);
    Data(Stripped(before, sign, type == '{'));
    const size_t raw_end = type == '%' ? RawTagEnd(open + 2) : std::string::npos;
    MoveTo(open);
    if (raw_end != std::string::npos) {
      Ended(raw_end);
      Raw();
      return;
    }
    if (type != '#') {
      Push(type == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "");
    }
    Ended(open + (sign == ' ' ? 2 : 3));
    if (type == '#') {
      Comment();
    } else {
      Inside(type == '{' ? Tag::kVariable : Tag::kBlock);
    }
  }

  void Comment() {
    const size_t close = source_.find("#}", at_);
    if (at_ >= source_.size()) return;  // nothing left to complain about, as in Jinja
    if (close == std::string::npos) return Fail("Missing end of comment tag");
    size_t end = close + 2;
    if (close > at_ && source_[close - 1] == '-') {
      end = SkipSpace(end);
    } else if (!(close > at_ && source_[close - 1] == '+') && end < source_.size() &&
               source_[end] == '\n') {
      ++end;
    }
    Ended(end);
  }

  void Raw() {
    if (at_ >= source_.size()) return;
    for (size_t open = source_.find("{%", at_); open != std::string::npos;
         open = source_.find("{%", open + 1)) {
      size_t at = open + 2;
      char sign = ' ';
      if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) sign = source_[at++];
      at = SkipSpace(at);
      if (!At(at, "endraw")) continue;
      at = SkipSpace(at + 6);
      size_t end = 0;
      if (At(at, "+%}")) {
        end = at + 3;
      } else if (At(at, "-%}")) {
        end = SkipSpace(at + 3);
      } else if (At(at, "%}")) {
        end = at + 2;
        if (end < source_.size() && source_[end] == '\n') ++end;
      } else {
        continue;
      }
      Data(Stripped(std::string_view(source_).substr(at_, open - at_), sign, false));
      Ended(end);
      return;
    }
    Fail("Missing end of raw directive");
  }

  // The end of the tag at at_, or npos.
  size_t TagEnd(Tag tag) const {
    if (tag == Tag::kVariable) {
      if (At(at_, "-}}")) return SkipSpace(at_ + 3);
      return At(at_, "}}") ? at_ + 2 : std::string::npos;
    }
    if (At(at_, "+%}")) return at_ + 3;
    if (At(at_, "-%}")) return SkipSpace(at_ + 3);
    if (!At(at_, "%}")) return std::string::npos;
    return at_ + 2 < source_.size() && source_[at_ + 2] == '\n' ? at_ + 3 : at_ + 2;
  }

  void Inside(Tag tag) {
    std::string closers;
    while (!failed_ && at_ < source_.size()) {
      const size_t end = closers.empty() ? TagEnd(tag) : std::string::npos;
      if (end != std::string::npos) {
        Push(tag == Tag::kVariable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, "");
        Ended(end);
        return;
      }
      const size_t space = SkipSpace(at_);
      if (space != at_) {
        MoveTo(space);
      } else if (!Number() && !Name() && !String()) {
        Operator(closers);
      }
    }
  }

  bool Number() {
    const std::string_view s = source_;
    const size_t digits = DigitRun(s, at_);
    if (digits == at_) return false;
    // Fraction and exponent make a float, unless a dot stands before (x.1.2).
    if (at_ == 0 || s[at_ - 1] != '.') {
      size_t end = digits;
      bool real = false;
      if (end < s.size() && s[end] == '.') {
        const size_t fraction = DigitRun(s, end + 1);
        if (fraction != end + 1) {
          end = fraction;
          real = true;
        }
      }
      if (end < s.size() && (s[end] == 'e' || s[end] == 'E')) {
        size_t e = end + 1;
        if (e < s.size() && (s[e] == '+' || s[e] == '-')) ++e;
        const size_t exponent = DigitRun(s, e);
        if (exponent != e) {
          end = exponent;
          real = true;
        }
      }
      if (real) {
        Push(TokenKind::kFloat, "");
        const std::string text = WithoutUnderscores(s.substr(at_, end - at_));
        tokens_.back().number = Value::Float(std::strtod(text.c_str(), nullptr));
        MoveTo(end);
        return true;
      }
    }
    Integer(digits);
    return true;
  }

  void Integer(size_t digits) {
    const std::string_view s = source_;
    int base = 10;
    size_t start = at_;
    size_t end = digits;
    const char mark =
        at_ + 1 < s.size() && s[at_] == '0' ? static_cast<char>(s[at_ + 1] | 0x20) : 0;
    if (mark == 'x' || mark == 'o' || mark == 'b') {
      const int wanted = mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
      const auto fits = [&](size_t i) {
        if (i >= s.size()) return false;
        const char c = static_cast<char>(s[i] | 0x20);
        const int v = IsDigit(s[i]) ? s[i] - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
        return v < wanted;
      };
      size_t i = at_ + 2;
      while (fits(i) || (i < s.size() && s[i] == '_' && fits(i + 1))) ++i;
      if (i > at_ + 2) {
        base = wanted;
        start = at_ + 2;
        end = i;
      }
    }
    if (base == 10 && s[at_] == '0') {
      // Leading zeros are a number of their own: 007 is 00, then 7.
      end = at_ + 1;
      while (end < s.size() &&
             (s[end] == '0' || (s[end] == '_' && end + 1 < s.size() && s[end + 1] == '0'))) {
        ++end;
      }
    }
    Push(TokenKind::kInteger, "");
    const std::string text = WithoutUnderscores(s.substr(start, end - start));
    if (text.size() > 4300) return Fail("integer literal is too long (limit 4300 digits)");
    tokens_.back().number = ToValue(arena_, BigInt::Parse(text, base));
    MoveTo(end);
  }

  bool Name() {
    size_t end = at_;
    while (end < source_.size()) {
      size_t next = end;
      const uint32_t c = DecodeAt(source_, next);
      if (!IsWord(c) && !(c >= 0x80 && IsClass(c, CharClass::kIdContinue))) break;
      end = next;
    }
    if (end == at_) return false;
    const std::string_view name = std::string_view(source_).substr(at_, end - at_);
    if (!IsIdentifier(name)) {
      Fail("Invalid character in identifier");
      return true;
    }
    Push(TokenKind::kName, std::string(name));
    MoveTo(end);
    return true;
  }

  bool String() {
    const char quote = source_[at_];
    if (quote != '\'' && quote != '"') return false;
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return false;
    std::string text;
    const std::string error =
        Unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1), text);
    if (!error.empty()) {
      Fail(error);
      return true;
    }
    Push(TokenKind::kString, std::move(text));
    MoveTo(end + 1);
    return true;
  }

  void Operator(std::string& closers) {
    static constexpr std::string_view kDouble[] = {"//", "**", "==", "!=", ">=", "<="};
    size_t length = 0;
    for (const std::string_view op : kDouble) {
      if (At(at_, op)) length = 2;
    }
    const char c = source_[at_];
    if (length == 0 && std::string_view("+-/*%~[](){}><=.:|,;").find(c) != std::string_view::npos) {
      length = 1;
    }
    if (length == 0) {
      size_t next = at_;
      DecodeAt(source_, next);
      Fail(absl::StrCat("unexpected char ",
                        ReprText(std::string_view(source_).substr(at_, next - at_)), " at ",
                        CountCodePoints(std::string_view(source_).substr(0, at_))));
      return;
    }
    if (length == 1) {
      if (c == '(' || c == '[' || c == '{')
        closers.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
      if (c == ')' || c == ']' || c == '}') {
        if (closers.empty()) return Fail(absl::StrCat("unexpected '", std::string(1, c), "'"));
        const char expected = closers.back();
        closers.pop_back();
        if (expected != c) {
          return Fail(absl::StrCat("unexpected '", std::string(1, c), "', expected '",
                                   std::string(1, expected), "'"));
        }
      }
    }
    Push(TokenKind::kOperator, source_.substr(at_, length));
    MoveTo(at_ + length);
  }

  // Python's unicode-escape codec, after every character beyond ASCII became an escape itself.
  static std::string Unescape(std::string_view raw, std::string& out) {
    std::string ascii;
    for (size_t at = 0; at < raw.size();) {
      const uint32_t c = DecodeAt(raw, at);
      if (c < 0x80) {
        ascii.push_back(static_cast<char>(c));
      } else {
        const int width = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
        ascii += width == 2 ? "\\x" : width == 4 ? "\\u" : "\\U";
        for (int i = width - 1; i >= 0; --i)
          ascii.push_back("0123456789abcdef"[(c >> (4 * i)) & 15]);
      }
    }
    for (size_t i = 0; i < ascii.size(); ++i) {
      if (ascii[i] != '\\') {
        out.push_back(ascii[i]);
        continue;
      }
      if (++i >= ascii.size()) return "\\ at end of string";
      const char c = ascii[i];
      static constexpr std::string_view kFrom = "\\'\"abfnrtv";
      static constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
      if (c == '\n') continue;
      if (const size_t known = kFrom.find(c); known != std::string_view::npos) {
        out.push_back(kTo[known]);
      } else if (c >= '0' && c <= '7') {
        uint32_t code = 0;
        size_t n = 0;
        for (; n < 3 && i + n < ascii.size() && ascii[i + n] >= '0' && ascii[i + n] <= '7'; ++n) {
          code = code * 8 + static_cast<uint32_t>(ascii[i + n] - '0');
        }
        i += n - 1;
        AppendUtf8(code, out);
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t width = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        uint64_t code = 0;
        for (size_t n = 1; n <= width; ++n) {
          const char d = i + n < ascii.size() ? ascii[i + n] : ' ';
          if (!std::isxdigit(static_cast<unsigned char>(d))) {
            return absl::StrCat("truncated \\", std::string(1, c), std::string(width, 'X'),
                                " escape");
          }
          code = code * 16 + static_cast<uint64_t>(IsDigit(d) ? d - '0' : (d | 0x20) - 'a' + 10);
        }
        if (code > 0x10FFFF) return "illegal Unicode character";
        AppendUtf8(static_cast<uint32_t>(code), out);
        i += width;
      } else if (c == 'N') {
        return "\\N escapes are not supported: write the character itself";
      } else {
        out.push_back('\\');
        out.push_back(c);
      }
    }
    return "";
  }

  const std::string source_;
  Arena& arena_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int line_ = 1;
  size_t line_start_ = 0;
  bool line_starting_ = true;
  bool failed_ = false;
};

}  // namespace

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "template data / text";
    case TokenKind::kVariableBegin:
      return "begin of print statement";
    case TokenKind::kVariableEnd:
      return "end of print statement";
    case TokenKind::kBlockBegin:
      return "begin of statement block";
    case TokenKind::kBlockEnd:
      return "end of statement block";
    case TokenKind::kString:
      return "string";
    case TokenKind::kInteger:
      return "integer";
    case TokenKind::kFloat:
      return "float";
    case TokenKind::kEnd:
      return "end of template";
    default:
      return token.text;
  }
}

std::vector<Token> Tokenize(std::string_view source, Arena& arena) {
  return Lexer(source, arena).Run();
}

}  // namespace tessera::tokenizer::jinja

#include "services/parser/formats/json_stream.h"

#include <optional>
#include <utility>

#include "services/parser/formats/json_text.h"
#include "services/parser/formats/text_buffer.h"

namespace tessera::parser {
namespace {

// Words and numbers: anything that a comma, a colon, a bracket or white space ends.
bool IsWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
         c == '-' || c == '.' || c == '_';
}

// A word longer than this is no number that anyone means, a longer key no name.
constexpr size_t kWordBytesMax = 4096;
constexpr size_t kKeyBytesMax = 64 << 10;

bool IsHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

}  // namespace

JsonProgress JsonSkipper::Feed(std::string_view text, size_t* consumed) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    bool done = false;
    switch (phase_) {
      case Phase::kString:
        if (c == '\\') phase_ = Phase::kEscape;
        if (c == '"') {
          phase_ = Phase::kBetween;
          done = depth_ == 0;
        }
        break;
      case Phase::kEscape:
        phase_ = Phase::kString;
        break;
      case Phase::kWord:
        if (IsWordByte(c)) break;
        *consumed += i;
        return JsonProgress::kDone;
      case Phase::kBetween:
        if (c == '"') {
          phase_ = Phase::kString;
        } else if (c == '{' || c == '[') {
          ++depth_;
        } else if (c == '}' || c == ']') {
          if (depth_ == 0) return JsonProgress::kError;
          done = --depth_ == 0;
        } else if (depth_ == 0 && !IsSpace(c)) {
          if (!IsWordByte(c)) return JsonProgress::kError;
          phase_ = Phase::kWord;
        }
        break;
    }
    if (done) {
      *consumed += i + 1;
      return JsonProgress::kDone;
    }
  }
  *consumed += text.size();
  return JsonProgress::kMore;
}

JsonProgress JsonObjectStream::Feed(std::string_view text, size_t* consumed, std::string* out) {
  size_t i = 0;
  while (i < text.size()) {
    if (phase_ == Phase::kString) {  // the bulk of long arguments
      size_t plain = i;
      while (plain < text.size() && text[plain] != '"' && text[plain] != '\\' &&
             static_cast<unsigned char>(text[plain]) >= 0x20) {
        ++plain;
      }
      if (plain > i) Write(text.substr(i, plain - i), out);
      i = plain;
      if (i == text.size()) break;
    }
    reread_ = false;
    const JsonProgress progress = FeedByte(text[i], out);
    if (progress == JsonProgress::kError) {
      *consumed += i;
      return progress;
    }
    if (!reread_) ++i;
    if (progress == JsonProgress::kDone) {
      *consumed += i;
      return progress;
    }
  }
  *consumed += text.size();
  return JsonProgress::kMore;
}

JsonProgress JsonObjectStream::FeedByte(char c, std::string* out) {
  switch (phase_) {
    case Phase::kKey:
      if (c == '\\') phase_ = Phase::kKeyEscape;
      if (c == '"') {
        EndKey();
      } else {
        key_.push_back(c);
      }
      return key_.size() > kKeyBytesMax ? JsonProgress::kError : JsonProgress::kMore;
    case Phase::kKeyEscape:
      key_.push_back(c);
      phase_ = Phase::kKey;
      return JsonProgress::kMore;
    case Phase::kString:
      FeedString(c, out);
      return JsonProgress::kMore;
    case Phase::kEscape:
      FeedEscape(c, out);
      return JsonProgress::kMore;
    case Phase::kUnicode:
      FeedUnicode(c, out);
      return JsonProgress::kMore;
    case Phase::kWord:
      if (IsWordByte(c)) {
        word_.push_back(c);
        return word_.size() > kWordBytesMax ? JsonProgress::kError : JsonProgress::kMore;
      }
      EndWord(out);
      reread_ = true;
      return JsonProgress::kMore;
    default:
      break;
  }
  if (IsSpace(c)) return JsonProgress::kMore;
  return FeedStructure(c, out);
}

// Between the tokens of the object.
JsonProgress JsonObjectStream::FeedStructure(char c, std::string* out) {
  switch (phase_) {
    case Phase::kFirstValue:
      if (c == ']') return Pop(c, out);
      return BeginValue(c, out);
    case Phase::kValue:
      if (c == ']' && !stack_.empty() && !stack_.back().object) {  // a comma before the end
        repaired_ = true;
        return Pop(c, out);
      }
      return BeginValue(c, out);
    case Phase::kFirstKey:
    case Phase::kNextKey:
      if (c == '}') {
        repaired_ = repaired_ || phase_ == Phase::kNextKey;
        return Pop(c, out);
      }
      if (c != '"') return JsonProgress::kError;
      key_.clear();
      phase_ = Phase::kKey;
      return JsonProgress::kMore;
    case Phase::kColon:
      if (c != ':') return JsonProgress::kError;
      phase_ = Phase::kValue;
      return JsonProgress::kMore;
    case Phase::kAfterValue:
      if (c == ',') {
        if (!stack_.back().object) before_ = ", ";
        phase_ = stack_.back().object ? Phase::kNextKey : Phase::kValue;
        return JsonProgress::kMore;
      }
      return Pop(c, out);
    default:
      return JsonProgress::kError;
  }
}

JsonProgress JsonObjectStream::BeginValue(char c, std::string* out) {
  if (c == '{' || c == '[') {
    if (stack_.size() >= static_cast<size_t>(kValueNestingMax)) return JsonProgress::kError;
    Write(std::string_view(&c, 1), out);
    stack_.emplace_back().object = c == '{';
    phase_ = c == '{' ? Phase::kFirstKey : Phase::kFirstValue;
    return JsonProgress::kMore;
  }
  if (stack_.empty()) return JsonProgress::kError;
  if (c == '"') {
    Write("\"", out);
    phase_ = Phase::kString;
    return JsonProgress::kMore;
  }
  if (!IsWordByte(c)) return JsonProgress::kError;
  word_.assign(1, c);
  phase_ = Phase::kWord;
  return JsonProgress::kMore;
}

JsonProgress JsonObjectStream::Pop(char c, std::string* out) {
  if (stack_.empty() || c != (stack_.back().object ? '}' : ']')) return JsonProgress::kError;
  before_.clear();
  stack_.pop_back();
  Write(std::string_view(&c, 1), out);
  EndValue();
  return stack_.empty() ? JsonProgress::kDone : JsonProgress::kMore;
}

void JsonObjectStream::EndValue() {
  phase_ = Phase::kAfterValue;
  if (muted_depth_ == stack_.size()) muted_depth_ = 0;
}

// A key is compared and written in one spelling, whatever escapes the model chose.
void JsonObjectStream::EndKey() {
  Frame& frame = stack_.back();
  std::string written = "\"" + key_ + "\"";
  if (std::optional<JsonValue> key = ReadJson(written); key.has_value()) {
    written = std::move(key->text);
  } else {  // an escape that JSON does not know: the text as it stands
    written = "\"";
    AppendJsonEscaped(key_, &written);
    written.push_back('"');
    repaired_ = true;
  }
  phase_ = Phase::kColon;
  if (muted_depth_ > 0) return;
  if (!frame.keys.insert(written).second) {
    muted_depth_ = stack_.size();
    repaired_ = true;
    return;
  }
  before_ = frame.keys.size() > 1 ? ", " : "";
  before_.append(written);
  before_.append(": ");
}

void JsonObjectStream::EndWord(std::string* out) {
  static constexpr std::pair<std::string_view, std::string_view> kPython[] = {
      {"None", "null"}, {"True", "true"}, {"False", "false"}};
  std::string text;
  if (std::optional<JsonValue> value = ReadJson(word_); value.has_value()) {
    text = std::move(value->text);
  } else {
    repaired_ = true;
    for (const auto& [python, json] : kPython) {
      if (word_ == python) text = json;
    }
    if (text.empty()) text = "\"" + word_ + "\"";  // word bytes need no escape
  }
  Write(text, out);
  EndValue();
}

void JsonObjectStream::FeedString(char c, std::string* out) {
  if (c == '"') {
    Write("\"", out);
    EndValue();
  } else if (c == '\\') {
    phase_ = Phase::kEscape;
  } else {  // a control character, as models write them
    repaired_ = true;
    std::string escaped;
    AppendJsonEscaped(std::string_view(&c, 1), &escaped);
    Write(escaped, out);
  }
}

void JsonObjectStream::FeedEscape(char c, std::string* out) {
  phase_ = Phase::kString;
  if (c == 'u') {
    unicode_.clear();
    phase_ = Phase::kUnicode;
  } else if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
    Write(std::string("\\") + c, out);
  } else {  // no escape of JSON: the backslash is text
    repaired_ = true;
    reread_ = true;
    Write("\\\\", out);
  }
}

void JsonObjectStream::FeedUnicode(char c, std::string* out) {
  if (!IsHex(c)) {
    repaired_ = true;
    reread_ = true;
    phase_ = Phase::kString;
    Write("\\\\u" + unicode_, out);
    return;
  }
  unicode_.push_back(c);
  if (unicode_.size() < 4) return;
  phase_ = Phase::kString;
  Write("\\u" + unicode_, out);
}

void JsonObjectStream::Write(std::string_view text, std::string* out) {
  if (muted_depth_ > 0) return;
  out->append(before_);
  before_.clear();
  out->append(text);
}

void JsonObjectStream::Close(std::string* out) {
  if (stack_.empty()) {
    if (phase_ == Phase::kValue) out->append("{}");
    return;
  }
  repaired_ = true;
  const bool in_string =
      phase_ == Phase::kString || phase_ == Phase::kEscape || phase_ == Phase::kUnicode;
  if (in_string && muted_depth_ == 0) out->push_back('"');
  while (!stack_.empty()) {
    // What is inside a member that is left out was never opened.
    const bool written = muted_depth_ == 0 || stack_.size() <= muted_depth_;
    if (written) out->push_back(stack_.back().object ? '}' : ']');
    stack_.pop_back();
  }
}

}  // namespace tessera::parser

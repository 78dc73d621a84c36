#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/text_format.h"
#include "tokenizer/chat_template/unicode.h"

// Filters and methods over text that Interpreter::RunFilter and CallTextMethod do not do
// themselves. Each returns kMissing for a name that it does not know.
namespace tessera::tokenizer::jinja {
namespace {

std::string TitleWords(std::string_view text) {
  std::string out, word;
  const auto flush = [&]() {
    if (word.empty()) return;
    size_t first = 0;
    DecodeAt(word, first);
    out += ToUpper(std::string_view(word).substr(0, first));
    out += ToLower(std::string_view(word).substr(first));
    word.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t c = DecodeAt(text, at);
    if (c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || IsSpace(c)) {
      flush();
      out.append(text.substr(begin, at - begin));
    } else {
      word.append(text.substr(begin, at - begin));
    }
  }
  flush();
  return out;
}

int64_t WordCount(std::string_view text) {
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const bool word = IsWord(DecodeAt(text, at));
    words += word && !inside;
    inside = word;
  }
  return words;
}

std::string UrlQuote(std::string_view text, bool for_query) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       c == '-' || c == '_' || c == '.' || c == '~' || (c == '/' && !for_query);
    if (plain) {
      out.push_back(c);
    } else if (c == ' ' && for_query) {
      out.push_back('+');
    } else {
      static constexpr char kHex[] = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

}  // namespace

Value Interpreter::Changed(const Value& source, std::string_view text, bool markup) {
  return Value::View(
      arena_.Copy(text),
      static_cast<uint8_t>((source.origin() != 0 ? kFromContext : 0) | (markup ? kMarkup : 0)));
}

Value Interpreter::Escaped(const Value& value, bool again) {
  const Value text = Text(value);
  if (text.failed() || (text.markup() && !again)) return text;
  TextBuilder out;
  const std::string_view chars = text.text();
  for (size_t i = 0; i < chars.size(); ++i) {
    const char* entity = chars[i] == '&'    ? "&amp;"
                         : chars[i] == '<'  ? "&lt;"
                         : chars[i] == '>'  ? "&gt;"
                         : chars[i] == '"'  ? "&#34;"
                         : chars[i] == '\'' ? "&#39;"
                                            : nullptr;
    if (entity != nullptr) {
      out.Append(entity, text.origin() != 0);
    } else {
      out.AppendPart(text, i, i + 1);
    }
  }
  return Finish(arena_, out, true);
}

Value Interpreter::SplitLines(const Value& text, bool keep_ends) {
  std::vector<Value> lines;
  const std::string_view chars = text.text();
  for (size_t begin = 0; begin < chars.size();) {
    size_t end = begin, next = begin;
    while (end < chars.size()) {
      next = end;
      const uint32_t c = DecodeAt(chars, next);
      if (IsLineBreak(c)) {
        if (c == '\r' && next < chars.size() && chars[next] == '\n') ++next;
        break;
      }
      end = next;
    }
    lines.push_back(Substring(arena_, text, begin, keep_ends ? next : end));
    begin = next;
  }
  if (!Step(static_cast<int64_t>(lines.size()))) return Value::Error();
  return MakeList(arena_, lines);
}

Value Interpreter::Indented(const Value& text, const CallArgs& args) {
  const Value width = args.Get(0, "width");
  const bool first = Truth(args.Get(1, "first")), blank = Truth(args.Get(2, "blank"));
  if (width.small_int() && width.integer > 100'000) {
    return LimitReached("value_bytes", "an indentation is too wide");
  }
  const Value indent =
      width.str()
          ? width
          : Value::View(arena_.Copy(std::string(
                static_cast<size_t>(width.small_int() ? std::max<int64_t>(0, width.integer) : 4),
                ' ')));
  TextBuilder whole;
  whole.Append(text);
  whole.Append("\n", false);
  const Value lines = SplitLines(Finish(arena_, whole), false);
  if (lines.failed()) return lines;
  TextBuilder out;
  for (size_t i = 0; i < lines.list->count; ++i) {
    const Value& line = lines.list->items[i];
    if (i > 0) out.Append("\n", false);
    if ((i > 0 && (blank || line.bytes != 0)) || (i == 0 && first)) out.Append(indent);
    out.Append(line);
    if (!arena_.CanTake(out.text().size())) {
      return LimitReached("value_bytes", "an indented text is too long");
    }
  }
  return Finish(arena_, out, text.markup());
}

Value Interpreter::Truncated(const Value& text, const CallArgs& args) {
  const Value length_value = args.Get(0, "length");
  const Value end_value = args.Get(2, "end");
  const Value leeway_value = args.Get(3, "leeway");
  const int64_t length = length_value.small_int() ? length_value.integer : 255;
  const Value end = end_value.str() ? end_value : Value::View("...");
  const int64_t leeway = leeway_value.small_int() ? leeway_value.integer : 5;
  const auto end_length = static_cast<int64_t>(CountCodePoints(end.text()));
  if (length < end_length) {
    return Fail("AssertionError",
                absl::StrCat("expected length >= ", end_length, ", got ", length));
  }
  if (static_cast<int64_t>(CountCodePoints(text.text())) <= length + leeway) return text;
  size_t cut = OffsetOf(text.text(), static_cast<size_t>(length - end_length));
  if (!Truth(args.Get(1, "killwords"))) {
    const size_t space = text.text().substr(0, cut).rfind(' ');
    if (space != std::string_view::npos) cut = space;
  }
  TextBuilder out;
  out.AppendPart(text, 0, cut);
  out.Append(end);
  return Finish(arena_, out, text.markup());
}

// center, ljust, rjust: side 0, -1, 1.
Value Interpreter::Padded(const Value& text, const CallArgs& args, int side, int64_t otherwise) {
  const Value width_value = args.Get(0, "width");
  const Value fill = args.Get(1, "fillchar");
  const int64_t width = width_value.small_int() ? width_value.integer : otherwise;
  const auto length = static_cast<int64_t>(CountCodePoints(text.text()));
  if (width <= length) return text;
  if (width > 1'000'000) return LimitReached("value_bytes", "a padded text is too wide");
  const int64_t missing = width - length;
  // Python's str.center puts the odd blank to the left if the width is odd.
  const int64_t left = side < 0 ? 0 : side > 0 ? missing : missing / 2 + (missing & width & 1);
  TextBuilder out;
  const Value pad = fill.str() ? fill : Value::View(" ");
  for (int64_t i = 0; i < left; ++i) out.Append(pad);
  out.Append(text);
  for (int64_t i = left; i < missing; ++i) out.Append(pad);
  return Finish(arena_, out, text.markup());
}

Value Interpreter::TextFilter(std::string_view name, const Value& input, const CallArgs& args) {
  if (name == "e" || name == "escape") return Escaped(input, false);
  if (name == "forceescape") return Escaped(input, true);
  if (name == "pprint") {
    if (input.sequence() || input.kind == Kind::kDict) {
      TextBuilder text;
      AppendRepr(input, text, 0);
      if (CountCodePoints(text.text()) > 79) {
        return Fail("NotImplementedError", "pprint of a value wider than a line is not supported");
      }
      return Finish(arena_, text);
    }
    TextBuilder text;
    AppendRepr(input, text, 0);
    return Finish(arena_, text);
  }
  if (name == "urlencode" && input.kind == Kind::kDict) {
    std::string out;
    for (size_t i = 0; i < input.dict->count; ++i) {
      const Value key = Text(input.dict->entries[i].key),
                  value = Text(input.dict->entries[i].value);
      if (key.failed() || value.failed()) return Value::Error();
      absl::StrAppend(&out, i > 0 ? "&" : "", UrlQuote(key.text(), true), "=",
                      UrlQuote(value.text(), true));
    }
    return Value::View(arena_.Copy(out), kFromContext);
  }
  if (name == "attr") {
    const Value attribute = args.Get(0, "name");
    if (input.kind != Kind::kDict && attribute.str()) return Attribute(input, attribute.text());
    return Fail("NotImplementedError", "attr of a mapping is not supported");
  }
  const bool known = name == "title" || name == "wordcount" || name == "urlencode" ||
                     name == "indent" || name == "truncate" || name == "center";
  if (!known) return Value();
  if (input.sequence() && name == "urlencode") {
    return Fail("NotImplementedError", "urlencode of a list is not supported");
  }
  const Value text = Text(input);
  if (text.failed()) return text;
  if (name == "title") return Changed(text, TitleWords(text.text()), text.markup());
  if (name == "wordcount") return Value::Int(WordCount(text.text()));
  if (name == "urlencode") return Changed(text, UrlQuote(text.text(), false), false);
  if (name == "indent") return Indented(text, args);
  if (name == "truncate") return Truncated(text, args);
  return Padded(text, args, 0, 80);
}

// Methods of str beyond the common ones.
Value Interpreter::MoreTextMethod(std::string_view name, const Value& text, const CallArgs& args) {
  const std::string_view chars = text.text();
  const auto all = [&](auto test) {
    if (chars.empty()) return Value::Bool(false);
    for (size_t at = 0; at < chars.size();) {
      if (!test(DecodeAt(chars, at))) return Value::Bool(false);
    }
    return Value::Bool(true);
  };
  if (name == "isdigit") return all([](uint32_t c) { return IsClass(c, CharClass::kDigit); });
  if (name == "isdecimal") return all([](uint32_t c) { return IsClass(c, CharClass::kDecimal); });
  if (name == "isnumeric") return all([](uint32_t c) { return IsClass(c, CharClass::kNumeric); });
  if (name == "isalpha") return all([](uint32_t c) { return IsClass(c, CharClass::kAlpha); });
  if (name == "isspace") return all([](uint32_t c) { return IsSpace(c); });
  if (name == "isalnum") return all([](uint32_t c) { return c != '_' && IsWord(c); });
  if (name == "isascii") return Value::Bool(IsAscii(chars));
  if (name == "isidentifier") return Value::Bool(IsIdentifier(chars));
  if (name == "islower" || name == "isupper") return Value::Bool(IsCase(chars, name == "isupper"));
  if (name == "swapcase") return Changed(text, SwapCase(chars), text.markup());
  if (name == "casefold") return Changed(text, CaseFold(chars), text.markup());
  if (name == "splitlines") return SplitLines(text, Truth(args.Get(0, "keepends")));
  if (name == "center") return Padded(text, args, 0, 0);
  if (name == "ljust") return Padded(text, args, -1, 0);
  if (name == "rjust") return Padded(text, args, 1, 0);
  const Value first = args.Get(0, "");
  if (name == "zfill") {
    if (!first.small_int() || first.integer > 1'000'000)
      return Fail("TypeError", "zfill takes a width");
    FormatSpec spec;
    spec.fill = '0';
    spec.align = '=';
    spec.width = first.integer;
    return Changed(text, Pad(chars, spec, '='), text.markup());
  }
  if (name == "join") {
    std::vector<Value> items;
    if (!Items(first, items)) return Value::Error();
    TextBuilder out;
    for (size_t i = 0; i < items.size(); ++i) {
      if (!items[i].str()) {
        return Fail("TypeError", absl::StrCat("sequence item ", i, ": expected str instance, ",
                                              TypeName(items[i]), " found"));
      }
      if (i > 0) out.Append(text);
      out.Append(items[i]);
      if (!arena_.CanTake(out.text().size()))
        return LimitReached("value_bytes", "a joined text is too long");
    }
    return Finish(arena_, out, text.markup());
  }
  if (name == "rsplit") return SplitRight(text, args);
  for (const char* known : {"format", "format_map", "encode", "expandtabs", "translate",
                            "maketrans", "istitle", "isprintable"}) {
    if (name == known) {
      return Fail("NotImplementedError",
                  absl::StrCat("the method str.", known, " is not supported"));
    }
  }
  static constexpr std::string_view kSearch[] = {"find",         "rfind",     "index",
                                                 "rindex",       "count",     "removeprefix",
                                                 "removesuffix", "partition", "rpartition"};
  if (std::find(std::begin(kSearch), std::end(kSearch), name) == std::end(kSearch)) return Value();
  if (!first.str()) {
    return Fail("TypeError", absl::StrCat("must be str, not ", TypeName(first)));
  }
  return SearchMethod(name, text, first, args);
}

Value Interpreter::SplitRight(const Value& text, const CallArgs& args) {
  const Value separator = args.Get(0, "sep");
  const Value most = args.Get(1, "maxsplit");
  if (!separator.str()) {
    return Fail("NotImplementedError", "rsplit without a separator is not supported");
  }
  if (separator.bytes == 0) return Fail("ValueError", "empty separator");
  const std::string_view chars = text.text();
  std::vector<Value> parts;
  size_t end = chars.size();
  for (int64_t left = most.small_int() ? most.integer : -1; left != 0; --left) {
    if (end < separator.bytes) break;
    const size_t found = chars.rfind(separator.text(), end - separator.bytes);
    if (found == std::string_view::npos) break;
    if (!Step()) return Value::Error();
    parts.push_back(Substring(arena_, text, found + separator.bytes, end));
    end = found;
  }
  parts.push_back(Substring(arena_, text, 0, end));
  std::reverse(parts.begin(), parts.end());
  return MakeList(arena_, parts);
}

bool Interpreter::IsCase(std::string_view text, bool upper) {
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const uint32_t c = DecodeAt(text, at);
    if (IsClass(c, upper ? CharClass::kLower : CharClass::kUpper) ||
        IsClass(c, CharClass::kTitle)) {
      return false;
    }
    any |= IsClass(c, upper ? CharClass::kUpper : CharClass::kLower);
  }
  return any;
}

Value Interpreter::SearchMethod(std::string_view name, const Value& text, const Value& wanted,
                                const CallArgs& args) {
  const std::string_view chars = text.text(), part = wanted.text();
  if (args.positional.size() > 1) {
    return Fail("NotImplementedError",
                absl::StrCat(std::string(name), " with bounds is not supported"));
  }
  if (name == "removeprefix") {
    return chars.starts_with(part) ? Substring(arena_, text, part.size(), chars.size()) : text;
  }
  if (name == "removesuffix") {
    return !part.empty() && chars.ends_with(part)
               ? Substring(arena_, text, 0, chars.size() - part.size())
               : text;
  }
  if (name == "partition" || name == "rpartition") {
    if (part.empty()) return Fail("ValueError", "empty separator");
    const bool last = name == "rpartition";
    const size_t at = last ? chars.rfind(part) : chars.find(part);
    std::vector<Value> parts;
    if (at == std::string_view::npos) {
      parts = {Value::View(""), Value::View(""), Value::View("")};
      parts[last ? 2 : 0] = text;
    } else {
      parts = {Substring(arena_, text, 0, at), Substring(arena_, text, at, at + part.size()),
               Substring(arena_, text, at + part.size(), chars.size())};
    }
    return MakeList(arena_, parts, Kind::kTuple);
  }
  if (name == "count") {
    if (part.empty()) return Value::Int(static_cast<int64_t>(CountCodePoints(chars)) + 1);
    int64_t count = 0;
    for (size_t at = chars.find(part); at != std::string_view::npos;
         at = chars.find(part, at + part.size())) {
      ++count;
    }
    return Value::Int(count);
  }
  const size_t at = name[0] == 'r' ? chars.rfind(part) : chars.find(part);
  if (at == std::string_view::npos) {
    return name.ends_with("index") ? Fail("ValueError", "substring not found") : Value::Int(-1);
  }
  return Value::Int(static_cast<int64_t>(CountCodePoints(chars.substr(0, at))));
}

}  // namespace tessera::tokenizer::jinja

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/big_int.h"
#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/text_format.h"
#include "tokenizer/chat_template/unicode.h"

// Filters over sequences and numbers. Each returns kMissing for a name that it does not know, so
// that RunFilter can go on to the next group.
namespace tessera::tokenizer::jinja {

// Jinja's attribute argument: "a.b.0" is a path of keys and indices; a number is one index.
Value Interpreter::AttributePath(const Value& item, const Value& path) {
  if (!path.str()) return path.missing() || path.none() ? item : Item(item, path);
  Value at = item;
  std::string_view rest = path.text();
  while (!at.failed()) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool number =
        !part.empty() && part.size() < 10 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    at = Item(at, number ? Value::Int(std::atoll(std::string(part).c_str())) : Value::View(part));
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  return at;
}

// What sort, unique, min, max and groupby compare: the attribute, in lower case unless told.
Value Interpreter::SortKey(const Value& item, const Value& attribute, bool case_sensitive) {
  Value key = AttributePath(item, attribute);
  if (key.str() && !case_sensitive) key = Value::View(arena_.Copy(ToLower(key.text())));
  return key;
}

// Python's <, also for lists and tuples. False and an error if the two cannot be compared.
bool Interpreter::Less(const Value& a, const Value& b, bool& less) {
  less = false;
  if (a.kind == b.kind && a.sequence()) {
    for (size_t i = 0; i < a.list->count && i < b.list->count; ++i) {
      if (!Equal(a.list->items[i], b.list->items[i])) {
        return Less(a.list->items[i], b.list->items[i], less);
      }
    }
    less = a.list->count < b.list->count;
    return true;
  }
  const std::optional<bool> result = Compare(Op::kLt, a, b);
  less = result.value_or(false);
  return result.has_value();
}

// A stable merge sort that stops at the first comparison that fails.
bool Interpreter::SortPairs(std::vector<std::pair<Value, Value>>& items, bool reverse) {
  std::vector<std::pair<Value, Value>> merged(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, items.size());
      const size_t end = std::min(begin + 2 * width, items.size());
      size_t left = begin, right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool take_right = left == middle;
        if (left < middle && right < end) {
          const bool fine = reverse ? Less(items[left].first, items[right].first, take_right)
                                    : Less(items[right].first, items[left].first, take_right);
          if (!fine || !Step()) return false;
        }
        merged[out] = items[take_right ? right++ : left++];
      }
    }
    items.swap(merged);
  }
  return true;
}

Value Interpreter::Sorted(const Value& input, const Value& attribute, bool case_sensitive,
                          bool reverse) {
  std::vector<Value> items;
  if (!Items(input, items)) return Value::Error();
  std::vector<std::pair<Value, Value>> pairs;
  for (const Value& item : items) {
    std::vector<Value> keys;
    // "a,b" sorts by two attributes.
    std::string_view rest = attribute.str() ? attribute.text() : std::string_view();
    do {
      const size_t comma = rest.find(',');
      const Value part = attribute.str() ? Value::View(rest.substr(0, comma)) : attribute;
      keys.push_back(SortKey(item, part, case_sensitive));
      if (keys.back().failed()) return keys.back();
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    } while (!rest.empty());
    pairs.emplace_back(MakeList(arena_, keys), item);
  }
  if (!SortPairs(pairs, reverse)) return Value::Error();
  for (size_t i = 0; i < items.size(); ++i) items[i] = pairs[i].second;
  return MakeList(arena_, items);
}

Value Interpreter::DictSorted(const Value& input, const CallArgs& args) {
  if (input.kind != Kind::kDict) {
    return Fail("AttributeError",
                absl::StrCat("'", TypeName(input), "' object has no attribute 'items'"));
  }
  const Value by = args.Get(1, "by");
  const bool by_value = by.str() && by.text() == "value";
  if (!by_value && !by.missing() && !(by.str() && by.text() == "key")) {
    return Fail("FilterArgumentError", "You can only sort by either \"key\" or \"value\"");
  }
  const bool case_sensitive = Truth(args.Get(0, "case_sensitive"));
  std::vector<std::pair<Value, Value>> pairs;
  for (size_t i = 0; i < input.dict->count; ++i) {
    const DictEntry& entry = input.dict->entries[i];
    pairs.emplace_back(SortKey(by_value ? entry.value : entry.key, Value(), case_sensitive),
                       MakePair(arena_, entry.key, entry.value));
  }
  if (!SortPairs(pairs, Truth(args.Get(2, "reverse")))) return Value::Error();
  std::vector<Value> items;
  for (const auto& [key, item] : pairs) items.push_back(item);
  return MakeList(arena_, items);
}

// select, reject, selectattr, rejectattr.
Value Interpreter::Selected(std::string_view name, const Value& input, const CallArgs& args) {
  const bool by_attribute = name.ends_with("attr");
  const bool keep = name.starts_with("select");
  if (!Truth(input)) return MakeList(arena_, {});
  std::vector<Value> items, kept;
  if (!Items(input, items)) return Value::Error();
  size_t next = by_attribute ? 1 : 0;
  if (args.positional.size() < next) {
    return Fail("FilterArgumentError", "Missing parameter for attribute name");
  }
  const bool has_test = args.positional.size() > next;
  CallArgs rest;
  std::string_view test;
  if (has_test) {
    if (!args.positional[next].str() || !KnowsTest(args.positional[next].text())) {
      return Fail(
          "TemplateRuntimeError",
          absl::StrCat("No test named ", ReprText(Text(args.positional[next]).text()), "."));
    }
    test = args.positional[next].text();
    rest.positional.assign(args.positional.begin() + static_cast<std::ptrdiff_t>(next) + 1,
                           args.positional.end());
    rest.keywords = args.keywords;
  }
  for (const Value& item : items) {
    const Value value = by_attribute ? AttributePath(item, args.positional[0]) : item;
    const Value verdict = value.failed() || !has_test ? value : RunTest(test, value, rest);
    if (verdict.failed()) return verdict;
    if (Truth(verdict) == keep) kept.push_back(item);
  }
  return MakeList(arena_, kept);
}

Value Interpreter::Mapped(const Value& input, const CallArgs& args) {
  if (!Truth(input)) return MakeList(arena_, {});
  std::vector<Value> items;
  if (!Items(input, items)) return Value::Error();
  Value attribute, otherwise;
  for (const auto& [name, value] : args.keywords) {
    if (name == "attribute") attribute = value;
    if (name == "default") otherwise = value;
  }
  const bool by_attribute = args.positional.empty() && !attribute.missing();
  CallArgs rest;
  if (!by_attribute) {
    if (args.positional.empty()) {
      return Fail("FilterArgumentError", "map requires a filter argument");
    }
    if (!args.positional[0].str() || !KnowsFilter(args.positional[0].text())) {
      return Fail("TemplateRuntimeError",
                  absl::StrCat("No filter named ", ReprText(Text(args.positional[0]).text()), "."));
    }
    rest.positional.assign(args.positional.begin() + 1, args.positional.end());
    rest.keywords = args.keywords;
  }
  for (Value& item : items) {
    item = by_attribute ? AttributePath(item, attribute)
                        : RunFilter(args.positional[0].text(), item, rest);
    if (item.failed()) return item;
    if (by_attribute && item.undef() && !otherwise.missing() && !otherwise.none()) item = otherwise;
  }
  return MakeList(arena_, items);
}

Value Interpreter::Grouped(const Value& input, const CallArgs& args) {
  const Value attribute = args.Get(0, "attribute");
  const bool case_sensitive = Truth(args.Get(2, "case_sensitive"));
  const Value sorted = Sorted(input, attribute, case_sensitive, false);
  if (sorted.failed()) return sorted;
  std::vector<Value> groups, members;
  Value last;
  const auto close = [&]() {
    if (members.empty()) return;
    const Value real = AttributePath(members[0], attribute);
    groups.push_back(MakePair(arena_, real, MakeList(arena_, members)));
    groups.back().list->group = true;
    members.clear();
  };
  for (size_t i = 0; i < sorted.list->count; ++i) {
    const Value key = SortKey(sorted.list->items[i], attribute, case_sensitive);
    if (!members.empty() && !Equal(key, last)) close();
    last = key;
    members.push_back(sorted.list->items[i]);
  }
  close();
  return MakeList(arena_, groups);
}

Value Interpreter::Batched(std::string_view name, const Value& input, const CallArgs& args) {
  std::vector<Value> items, rows;
  if (!Items(input, items)) return Value::Error();
  const Value count_value = args.Get(0, name == "batch" ? "linecount" : "slices");
  const Value fill = args.Get(1, "fill_with");
  const bool fills = !fill.missing() && !fill.none();
  if (!count_value.small_int()) return Fail("TypeError", "the count must be an integer");
  const int64_t count = count_value.integer;
  if (count <= 0 || count > 100'000) {
    return Fail(count == 0 && name == "slice" ? "ZeroDivisionError" : "NotImplementedError",
                "integer division or modulo by zero");
  }
  const auto each = static_cast<size_t>(count);
  std::vector<Value> row;
  if (name == "batch") {
    for (const Value& item : items) {
      if (row.size() == each) rows.push_back(MakeList(arena_, std::exchange(row, {})));
      row.push_back(item);
    }
    if (!row.empty()) {
      if (!Step(count)) return Value::Error();
      while (fills && row.size() < each) row.push_back(fill);
      rows.push_back(MakeList(arena_, row));
    }
    return MakeList(arena_, rows);
  }
  const size_t whole = items.size() / each, extra = items.size() % each;
  size_t at = 0;
  for (size_t i = 0; i < each; ++i) {
    if (!Step()) return Value::Error();
    const size_t length = whole + (i < extra ? 1 : 0);
    row.assign(items.begin() + static_cast<std::ptrdiff_t>(at),
               items.begin() + static_cast<std::ptrdiff_t>(at + length));
    at += length;
    if (fills && i >= extra) row.push_back(fill);
    rows.push_back(MakeList(arena_, row));
  }
  return MakeList(arena_, rows);
}

Value Interpreter::SequenceFilter(std::string_view name, const Value& input, const CallArgs& args) {
  if (name == "map") return Mapped(input, args);
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr") {
    return Selected(name, input, args);
  }
  if (name == "sort") {
    return Sorted(input, args.Get(2, "attribute"), Truth(args.Get(1, "case_sensitive")),
                  Truth(args.Get(0, "reverse")));
  }
  if (name == "dictsort") return DictSorted(input, args);
  if (name == "groupby") return Grouped(input, args);
  if (name == "batch" || name == "slice") return Batched(name, input, args);
  std::vector<Value> items;
  if (name == "reverse") {
    if (!Items(input, items)) return Value::Error();
    std::reverse(items.begin(), items.end());
    if (!input.str()) return MakeList(arena_, items);
    TextBuilder text;
    for (const Value& item : items) text.Append(item);
    return Finish(arena_, text, input.markup());
  }
  if (name == "unique" || name == "min" || name == "max") {
    if (!Items(input, items)) return Value::Error();
    const bool case_sensitive = Truth(args.Get(0, "case_sensitive"));
    const Value attribute = args.Get(1, "attribute");
    const Value seen = MakeDict(arena_);
    std::vector<Value> kept;
    Value best, best_key;
    for (const Value& item : items) {
      const Value key = SortKey(item, attribute, case_sensitive);
      if (key.failed()) return key;
      if (name == "unique") {
        uint64_t hash = 0;
        if (!HashOf(key, hash)) {
          return Fail("TypeError", absl::StrCat("unhashable type: '", TypeName(key), "'"));
        }
        if (seen.dict->Find(key) != nullptr) continue;
        seen.dict->Set(arena_, key, Value::None());
        kept.push_back(item);
        continue;
      }
      bool better = best.missing();
      if (!better && !(name == "min" ? Less(key, best_key, better) : Less(best_key, key, better))) {
        return Value::Error();
      }
      if (better) {
        best = item;
        best_key = key;
      }
    }
    if (name == "unique") return MakeList(arena_, kept);
    return best.missing() ? Undefined("No aggregated item, sequence was empty.") : best;
  }
  if (name == "sum") {
    if (!Items(input, items)) return Value::Error();
    const Value start = args.Get(1, "start");
    Value total = start.missing() ? Value::Int(0) : start;
    for (const Value& item : items) {
      const Value value = AttributePath(item, args.Get(0, "attribute"));
      if (value.failed()) return value;
      if (value.undef()) return UndefinedUse(value);
      total = Add(total, value);
      if (total.failed()) return total;
    }
    return total;
  }
  return Value();
}

namespace {

// Python's int(text, base) and float(text): white space around, underscores between digits.
bool ParseInteger(std::string_view text, int base, BigInt& out) {
  size_t begin = 0, end = 0;
  StripRange(text, true, true, begin, end);
  text = text.substr(begin, end - begin);
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  const auto prefixed = [&](char mark) {
    return text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == mark;
  };
  if ((base == 16 && prefixed('x')) || (base == 8 && prefixed('o')) ||
      (base == 2 && prefixed('b'))) {
    text.remove_prefix(2);
    if (text[0] == '_') text.remove_prefix(1);
  }
  std::string digits;
  bool after_digit = false;
  for (size_t at = 0; at < text.size();) {
    const uint32_t c = DecodeAt(text, at);
    if (c == '_') {
      if (!after_digit || at >= text.size()) return false;
      after_digit = false;
      continue;
    }
    int value = DecimalValue(c);
    const uint32_t lower = c | 0x20;
    if (value < 0 && c < 0x80 && lower >= 'a' && lower <= 'z')
      value = static_cast<int>(lower - 'a') + 10;
    if (value < 0 || value >= base) return false;
    digits.push_back("0123456789abcdefghijklmnopqrstuvwxyz"[value]);
    after_digit = true;
  }
  if (digits.empty() || !after_digit || digits.size() > 4300) return false;
  out = BigInt::Parse(digits, base);
  out.negative = negative && !out.zero();
  while (!out.limbs.empty() && out.limbs.back() == 0) out.limbs.pop_back();
  return true;
}

bool ParseFloat(std::string_view text, double& out) {
  size_t begin = 0, end = 0;
  StripRange(text, true, true, begin, end);
  std::string plain;
  text = text.substr(begin, end - begin);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain.push_back(text[i]);
      continue;
    }
    const auto digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (i == 0 || !digit(i - 1) || !digit(i + 1)) return false;
  }
  if (plain.empty() || plain.find_first_of("xXpP(") != std::string::npos) return false;
  char* stop = nullptr;
  out = std::strtod(plain.c_str(), &stop);
  return stop == plain.c_str() + plain.size();
}

// round() to an even last digit, as Python does for `digits` decimal places.
double RoundTo(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits < -300) return 0;
  if (digits >= 0) {
    return std::strtod(FloatWithPrecision(value, 'f', static_cast<int>(digits), false).c_str(),
                       nullptr);
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / unit) * unit;
}

}  // namespace

Value Interpreter::ToInt(const Value& input, const CallArgs& args) {
  const Value otherwise = args.Get(0, "default");
  const Value base_value = args.Get(1, "base");
  const Value fallback = otherwise.missing() ? Value::Int(0) : otherwise;
  const int base = base_value.small_int() ? static_cast<int>(base_value.integer) : 10;
  if (input.undef()) return UndefinedUse(input);
  if (input.small_int()) return Value::Int(input.integer);
  if (input.kind == Kind::kBigInt) return input;
  double real = 0;
  if (input.kind == Kind::kFloat) {
    real = input.real;
  } else if (input.str()) {
    BigInt whole;
    if (base >= 2 && base <= 36 && ParseInteger(input.text(), base, whole)) {
      return ToValue(arena_, whole);
    }
    if (!ParseFloat(input.text(), real)) return fallback;
  } else {
    return fallback;
  }
  if (std::isinf(real)) return Fail("OverflowError", "cannot convert float infinity to integer");
  if (std::isnan(real)) return fallback;
  return ToValue(arena_, BigInt::OfDouble(real));
}

Value Interpreter::NumberFilter(std::string_view name, const Value& input, const CallArgs& args) {
  if (name == "int") return ToInt(input, args);
  if (name == "float") {
    const Value otherwise = args.Get(0, "default");
    double real = 0;
    if (input.undef()) return UndefinedUse(input);
    if (input.kind == Kind::kFloat) return input;
    if (input.integral()) return Value::Float(BigInt::OfValue(input).ToDouble());
    if (input.str() && ParseFloat(input.text(), real)) return Value::Float(real);
    return otherwise.missing() ? Value::Float(0) : otherwise;
  }
  if (name == "abs") {
    if (input.undef()) return UndefinedUse(input);
    if (input.kind == Kind::kFloat) return Value::Float(std::fabs(input.real));
    if (!input.integral()) {
      return Fail("TypeError", absl::StrCat("bad operand type for abs(): '", TypeName(input), "'"));
    }
    BigInt whole = BigInt::OfValue(input);
    whole.negative = false;
    return ToValue(arena_, whole);
  }
  if (name == "round") {
    const Value digits_value = args.Get(0, "precision");
    const Value method = args.Get(1, "method");
    const int64_t digits = digits_value.small_int() ? digits_value.integer : 0;
    const std::string_view how = method.str() ? method.text() : "common";
    if (how != "common" && how != "ceil" && how != "floor") {
      return Fail("FilterArgumentError", "method must be common, ceil or floor");
    }
    if (input.undef()) return UndefinedUse(input);
    if (!input.number()) {
      return Fail("TypeError",
                  absl::StrCat("type ", TypeName(input), " doesn't define __round__ method"));
    }
    if (how == "common" && input.integral() && digits >= 0) {
      return input.small_int() ? Value::Int(input.integer) : input;
    }
    const double real = input.kind == Kind::kFloat ? input.real : BigInt::OfValue(input).ToDouble();
    if (how == "common") {
      const double rounded = RoundTo(real, digits);
      return input.integral() ? ToValue(arena_, BigInt::OfDouble(rounded)) : Value::Float(rounded);
    }
    const double unit = std::pow(10.0, static_cast<double>(digits));
    return Value::Float((how == "ceil" ? std::ceil(real * unit) : std::floor(real * unit)) / unit);
  }
  if (name == "filesizeformat") {
    const Value bytes = NumberFilter("float", input, {});
    if (bytes.failed() || !bytes.number()) return bytes;
    const bool binary = Truth(args.Get(0, "binary"));
    const double base = binary ? 1024 : 1000;
    if (bytes.real == 1) return Value::View("1 Byte");
    std::string text;
    if (bytes.real < base) {
      text = absl::StrCat(static_cast<int64_t>(bytes.real), " Bytes");
    } else {
      static constexpr std::string_view kUnits = "kMGTPEZY";
      double unit = base * base;
      size_t i = 0;
      for (; i + 1 < kUnits.size() && bytes.real >= unit; ++i) unit *= base;
      text = absl::StrCat(FloatWithPrecision(base * bytes.real / unit, 'f', 1, false), " ",
                          binary && i == 0 ? "K" : std::string(1, kUnits[i]), binary ? "iB" : "B");
    }
    return Value::View(arena_.Copy(text));
  }
  return Value();
}

}  // namespace tessera::tokenizer::jinja

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/unicode.h"

namespace tessera::tokenizer::jinja {
namespace {

constexpr std::string_view kFilters[] = {
    "abs",     "attr",     "batch",       "capitalize", "center",    "count",
    "d",       "default",  "dictsort",    "e",          "escape",    "filesizeformat",
    "first",   "float",    "forceescape", "groupby",    "indent",    "int",
    "items",   "join",     "last",        "length",     "list",      "lower",
    "map",     "max",      "min",         "pprint",     "reject",    "rejectattr",
    "replace", "reverse",  "round",       "safe",       "select",    "selectattr",
    "slice",   "sort",     "string",      "sum",        "title",     "tojson",
    "trim",    "truncate", "unique",      "upper",      "urlencode", "wordcount"};
constexpr std::string_view kTests[] = {
    "!=",       "<",        "<=",          "==",       ">",           ">=",       "boolean",
    "callable", "defined",  "divisibleby", "eq",       "equalto",     "escaped",  "even",
    "false",    "filter",   "float",       "ge",       "greaterthan", "gt",       "in",
    "integer",  "iterable", "le",          "lessthan", "lower",       "lt",       "mapping",
    "ne",       "none",     "number",      "odd",      "sameas",      "sequence", "string",
    "test",     "true",     "undefined",   "upper"};
constexpr BuiltinSpec kBuiltins[] = {
    {"raise_exception"}, {"strftime_now"}, {"namespace"}, {"range"}, {"dict"}};
// No template needs a longer list, and each entry takes memory.
constexpr int64_t kRangeMax = 100'000;

template <size_t N>
bool OneOf(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

bool KnowsFilter(std::string_view name) { return OneOf(kFilters, name); }
bool KnowsTest(std::string_view name) { return OneOf(kTests, name); }

const BuiltinSpec* FindBuiltin(std::string_view name) {
  for (const BuiltinSpec& builtin : kBuiltins) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

bool Interpreter::Items(const Value& value, std::vector<Value>& items) {
  switch (value.kind) {
    case Kind::kUndefined:
      return true;
    case Kind::kList:
    case Kind::kTuple:
      items.assign(value.list->items, value.list->items + value.list->count);
      if (value.list->of == ListOf::kGenerator) value.list->count = 0;  // walked once
      break;
    case Kind::kDict:
      for (size_t i = 0; i < value.dict->count; ++i) items.push_back(value.dict->entries[i].key);
      break;
    case Kind::kStr: {
      const std::string_view text = value.text();
      for (size_t at = 0; at < text.size();) {
        const size_t begin = at;
        DecodeAt(text, at);
        items.push_back(Substring(arena_, value, begin, at));
      }
      break;
    }
    default:
      Fail("TypeError", absl::StrCat("'", TypeName(value), "' object is not iterable"));
      return false;
  }
  return Step(static_cast<int64_t>(items.size()));
}

Value Interpreter::Join(const Value& input, const CallArgs& args) {
  const Value separator = args.Get(0, "d");
  const Value attribute = args.Get(1, "attribute");
  std::vector<Value> items;
  if (!Items(input, items)) return Value::Error();
  TextBuilder text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0 && !separator.missing()) AppendText(separator, text);
    const Value item = attribute.missing() ? items[i] : Item(items[i], attribute);
    if (item.failed()) return item;
    AppendText(item, text);
  }
  return Finish(arena_, text);
}

Value Interpreter::ApplyFilter(const Expr& e, const Value& input) {
  CallArgs args;
  if (!EvalArguments(e, args)) return Value::Error();
  line_ = e.line;
  return RunFilter(e.name, input, args);
}

Value Interpreter::RunFilter(std::string_view name, const Value& input, const CallArgs& args) {
  if (!Step()) return Value::Error();
  for (const auto group :
       {&Interpreter::SequenceFilter, &Interpreter::NumberFilter, &Interpreter::TextFilter}) {
    const Value value = (this->*group)(name, input, args);
    if (value.missing()) continue;
    static constexpr std::string_view kGenerators[] = {"map",        "select",     "reject",
                                                       "selectattr", "rejectattr", "batch",
                                                       "slice",      "unique",     "reverse"};
    if (value.kind == Kind::kList && OneOf(kGenerators, name)) value.list->of = ListOf::kGenerator;
    return value;
  }
  if (name == "default" || name == "d") {
    const Value other = args.Get(0, "default_value");
    const Value falsy = args.Get(1, "boolean");
    const bool replace = input.undef() || (!falsy.missing() && Truth(falsy) && !Truth(input));
    return !replace ? input : other.missing() ? Value::View("") : other;
  }
  if (name == "tojson") return ToJson(input, args);
  if (name == "string") return Text(input);
  if (name == "safe") {
    Value text = Text(input);
    if (text.str()) text.flags |= kMarkup;
    return text;
  }
  if (name == "items") {
    if (!input.undef() && input.kind != Kind::kDict) {
      return Fail("TypeError", "Can only get item pairs from a mapping.");
    }
    const Value pairs = input.undef() ? MakeList(arena_, {}) : CallDictMethod({input, "items"}, {});
    if (!pairs.failed()) pairs.list->of = ListOf::kGenerator;
    return pairs;
  }
  if (name == "length" || name == "count") {
    if (input.undef()) return Value::Int(0);
    if (input.str()) return Value::Int(static_cast<int64_t>(CountCodePoints(input.text())));
    if (input.sequence() && input.list->of != ListOf::kGenerator) {
      return Value::Int(static_cast<int64_t>(input.list->count));
    }
    if (input.kind == Kind::kDict) return Value::Int(static_cast<int64_t>(input.dict->count));
    return Fail("TypeError", absl::StrCat("object of type '", TypeName(input), "' has no len()"));
  }
  if (name == "join") return Join(input, args);
  if (name == "list" || name == "first" || name == "last") {
    if (name == "last" && input.kind == Kind::kList && input.list->of == ListOf::kGenerator) {
      return Fail("TypeError", "'generator' object is not reversible");
    }
    std::vector<Value> items;
    if (!Items(input, items)) return Value::Error();
    if (name == "list") return MakeList(arena_, items);
    if (items.empty())
      return Undefined(name == "first" ? "No first item, sequence was empty."
                                       : "No last item, sequence was empty.");
    return name == "first" ? items.front() : items.back();
  }
  const Value text = Text(input);
  if (text.failed()) return text;
  if (name == "trim") return Strip(text, args, true, true);
  if (name == "replace") return Replace(text, args);
  const std::string changed = name == "upper"   ? ToUpper(text.text())
                              : name == "lower" ? ToLower(text.text())
                              : name == "title" ? ToTitle(text.text())
                                                : Capitalize(text.text());
  return Changed(text, changed, text.markup());
}

Value Interpreter::ApplyTest(const Expr& e, const Value& input) {
  CallArgs args;
  if (!EvalArguments(e, args)) return Value::Error();
  line_ = e.line;
  return RunTest(e.name, input, args);
}

Value Interpreter::RunTest(std::string_view name, const Value& input, const CallArgs& args) {
  if (name == "defined") return Value::Bool(!input.undef());
  if (name == "undefined") return Value::Bool(input.undef());
  if (name == "none") return Value::Bool(input.none());
  if (name == "string") return Value::Bool(input.str());
  if (name == "mapping") return Value::Bool(input.kind == Kind::kDict);
  if (name == "boolean") return Value::Bool(input.kind == Kind::kBool);
  if (name == "true") return Value::Bool(input.is_true());
  if (name == "false") return Value::Bool(input.kind == Kind::kBool && !input.is_true());
  if (name == "integer")
    return Value::Bool(input.kind == Kind::kInt || input.kind == Kind::kBigInt);
  if (name == "float") return Value::Bool(input.kind == Kind::kFloat);
  if (name == "number") return Value::Bool(input.number());
  if (name == "sequence" || name == "iterable") {
    const bool plain =
        input.sequence() && (input.list->of == ListOf::kItems || input.list->of == ListOf::kRange);
    return Value::Bool(input.str() || plain || (name == "iterable" && input.sequence()) ||
                       input.kind == Kind::kDict || (input.undef() && name == "iterable") ||
                       (input.undef() && name == "sequence"));
  }
  if (name == "odd" || name == "even") {
    const Value rest = Arithmetic(Op::kMod, input, Value::Int(2));
    if (rest.failed()) return rest;
    return Value::Bool(Equal(rest, Value::Int(name == "odd" ? 1 : 0)));
  }
  if (name == "callable") {
    return Value::Bool(input.kind == Kind::kMacro || input.kind == Kind::kBuiltin ||
                       input.kind == Kind::kMethod || input.kind == Kind::kLoop || input.undef());
  }
  if (name == "escaped") return Value::Bool(input.markup());
  if (name == "lower" || name == "upper") {
    const Value text = Text(input);
    return text.failed() ? text : Value::Bool(IsCase(text.text(), name == "upper"));
  }
  if (name == "filter") return Value::Bool(input.str() && KnowsFilter(input.text()));
  if (name == "test") return Value::Bool(input.str() && KnowsTest(input.text()));
  const Value other = args.Get(0, name == "in" ? "seq" : "b");
  if (other.missing()) {
    return Fail("TypeError", absl::StrCat("test ", std::string(name), " needs an argument"));
  }
  if (name == "divisibleby") {
    const Value rest = Arithmetic(Op::kMod, input, other);
    return rest.failed() ? rest : Value::Bool(!Truth(rest));
  }
  if (name == "sameas") {
    // Python's identity: singletons and small integers; other values are the same if they share
    // their storage.
    if (input.kind != other.kind) return Value::Bool(false);
    if (input.none() || input.kind == Kind::kBool || input.kind == Kind::kInt || input.str()) {
      return Value::Bool(Equal(input, other));
    }
    return Value::Bool(input.integer == other.integer);
  }
  static constexpr std::pair<std::string_view, Op> kOps[] = {
      {"!=", Op::kNe}, {"ne", Op::kNe}, {"<", Op::kLt}, {"lt", Op::kLt}, {"lessthan", Op::kLt},
      {"<=", Op::kLe}, {"le", Op::kLe}, {">", Op::kGt}, {"gt", Op::kGt}, {"greaterthan", Op::kGt},
      {">=", Op::kGe}, {"ge", Op::kGe}, {"in", Op::kIn}};
  Op op = Op::kEq;
  for (const auto& [text, value] : kOps) {
    if (text == name) op = value;
  }
  const std::optional<bool> holds = Compare(op, input, other);
  return holds.has_value() ? Value::Bool(*holds) : Value::Error();
}

Value Interpreter::CallMethod(const MethodObject& method, const CallArgs& args) {
  if (method.owner.kind == Kind::kLoop) {
    LoopObject& loop = *method.owner.loop;
    if (method.name == "cycle") {
      if (args.positional.empty()) return Fail("TypeError", "no items for cycling given");
      return args.positional[loop.index % args.positional.size()];
    }
    const Value now = MakeList(arena_, args.positional, Kind::kTuple);
    const bool changed = loop.changed.missing() || !Equal(loop.changed, now);
    loop.changed = now;
    return Value::Bool(changed);
  }
  return method.owner.str() ? CallTextMethod(method, args) : CallDictMethod(method, args);
}

Value Interpreter::CallDictMethod(const MethodObject& method, const CallArgs& args) {
  const DictObject& dict = *method.owner.dict;
  if (method.name == "get") {
    const Value key = args.Get(0, "key");
    if (key.missing()) return Fail("TypeError", "get expected at least 1 argument, got 0");
    uint64_t hash = 0;
    if (!HashOf(key, hash)) {
      return Fail("TypeError", absl::StrCat("unhashable type: '", TypeName(key), "'"));
    }
    if (const Value* found = dict.Find(key)) return *found;
    const Value otherwise = args.Get(1, "default");
    return otherwise.missing() ? Value::None() : otherwise;
  }
  if (method.name == "copy") return method.owner;  // nothing can change a mapping
  std::vector<Value> items;
  items.reserve(dict.count);
  for (size_t i = 0; i < dict.count; ++i) {
    const DictEntry& entry = dict.entries[i];
    items.push_back(method.name == "items"  ? MakePair(arena_, entry.key, entry.value)
                    : method.name == "keys" ? entry.key
                                            : entry.value);
  }
  if (!Step(static_cast<int64_t>(items.size()))) return Value::Error();
  const Value view = MakeList(arena_, items);
  view.list->of = ListOf::kView;
  view.list->shown = method.name == "items"  ? "dict_items"
                     : method.name == "keys" ? "dict_keys"
                                             : "dict_values";
  return view;
}

Value Interpreter::Strip(const Value& text, const CallArgs& args, bool left, bool right) {
  const Value chars = args.Get(0, "chars");
  const std::string_view whole = text.text();
  size_t begin = 0, end = whole.size();
  if (chars.missing() || chars.none()) {
    StripRange(whole, left, right, begin, end);
  } else {
    if (!chars.str()) return Fail("TypeError", "strip arg must be None or str");
    // A set of code points. Each side is walked by whole ones.
    const auto in_set = [&](size_t from, size_t to) {
      return chars.text().find(whole.substr(from, to - from)) != std::string_view::npos;
    };
    while (left && begin < end) {
      size_t next = begin;
      DecodeAt(whole, next);
      if (!in_set(begin, next)) break;
      begin = next;
    }
    while (right && begin < end) {
      size_t last = end - 1;
      while (last > begin && (static_cast<unsigned char>(whole[last]) & 0xC0) == 0x80) --last;
      if (!in_set(last, end)) break;
      end = last;
    }
  }
  return Substring(arena_, text, begin, end);
}

Value Interpreter::Split(const Value& text, const CallArgs& args) {
  const Value separator = args.Get(0, "sep");
  const Value most = args.Get(1, "maxsplit");
  int64_t left = most.missing() ? -1 : most.small_int() ? most.integer : -1;
  const std::string_view whole = text.text();
  std::vector<Value> parts;
  if (separator.missing() || separator.none()) {
    for (size_t at = 0;;) {
      size_t begin = at;
      while (begin < whole.size()) {
        size_t next = begin;
        if (!IsSpace(DecodeAt(whole, next))) break;
        begin = next;
      }
      if (begin == whole.size()) break;
      size_t end = begin;
      if (left-- == 0) {
        size_t first = 0, last = whole.size();
        StripRange(whole, false, true, first, last);
        parts.push_back(Substring(arena_, text, begin, last));
        break;
      }
      while (end < whole.size()) {
        size_t next = end;
        if (IsSpace(DecodeAt(whole, next))) break;
        end = next;
      }
      parts.push_back(Substring(arena_, text, begin, end));
      at = end;
    }
  } else {
    if (!separator.str()) return Fail("TypeError", "must be str or None");
    if (separator.bytes == 0) return Fail("ValueError", "empty separator");
    size_t at = 0;
    for (size_t found;
         left-- != 0 && (found = whole.find(separator.text(), at)) != std::string_view::npos;) {
      parts.push_back(Substring(arena_, text, at, found));
      at = found + separator.bytes;
    }
    parts.push_back(Substring(arena_, text, at, whole.size()));
  }
  if (!Step(static_cast<int64_t>(parts.size()))) return Value::Error();
  return MakeList(arena_, parts);
}

Value Interpreter::Replace(const Value& text, const CallArgs& args) {
  const Value from = args.Get(0, "old");
  const Value to = args.Get(1, "new");
  const Value most = args.Get(2, "count");
  if (!from.str() || !to.str()) return Fail("TypeError", "replace() takes two texts");
  if (from.bytes == 0)
    return Fail("NotImplementedError", "replacing the empty text is not supported");
  int64_t left = most.small_int() ? most.integer : -1;
  TextBuilder out;
  size_t at = 0;
  for (size_t found;
       left-- != 0 && (found = text.text().find(from.text(), at)) != std::string_view::npos;) {
    if (!Step() || !arena_.CanTake(out.text().size())) {
      return LimitReached("value_bytes", "a replaced text is too long");
    }
    out.AppendPart(text, at, found);
    out.Append(to);
    at = found + from.bytes;
  }
  out.AppendPart(text, at, text.bytes);
  return Finish(arena_, out);
}

Value Interpreter::CallTextMethod(const MethodObject& method, const CallArgs& args) {
  const std::string_view name = method.name;
  const Value& text = method.owner;
  if (name == "split") return Split(text, args);
  if (name == "strip") return Strip(text, args, true, true);
  if (name == "lstrip") return Strip(text, args, true, false);
  if (name == "rstrip") return Strip(text, args, false, true);
  if (name == "replace") {
    CallArgs safe = args;
    for (Value& value : safe.positional) {
      if (text.markup() && value.str()) value = Escaped(value, false);
    }
    Value replaced = Replace(text, safe);
    if (text.markup() && replaced.str()) replaced.flags |= kMarkup;
    return replaced;
  }
  if (name == "startswith" || name == "endswith") {
    const Value wanted = args.Get(0, "prefix");
    const Value from = args.Get(1, "start");
    if (args.positional.size() > 2 ||
        (!from.missing() && (!from.small_int() || from.integer < 0))) {
      return Fail("NotImplementedError",
                  absl::StrCat(std::string(name), " with these bounds is not supported"));
    }
    const size_t skipped =
        from.missing() ? 0 : OffsetOf(text.text(), static_cast<size_t>(from.integer));
    const std::string_view part = text.text().substr(skipped);
    std::vector<Value> candidates = {wanted};
    if (wanted.kind == Kind::kTuple && !Items(wanted, candidates)) return Value::Error();
    for (const Value& candidate : candidates) {
      if (!candidate.str()) {
        return Fail("TypeError", absl::StrCat(std::string(name),
                                              " first arg must be str or a tuple of str, not ",
                                              TypeName(candidate)));
      }
      const bool fits = name == "startswith" ? part.starts_with(candidate.text())
                                             : part.ends_with(candidate.text());
      if (fits) return Value::Bool(true);
    }
    return Value::Bool(false);
  }
  const Value more = MoreTextMethod(name, text, args);
  if (!more.missing()) return more;
  const std::string changed = name == "upper"   ? ToUpper(text.text())
                              : name == "lower" ? ToLower(text.text())
                              : name == "title" ? ToTitle(text.text())
                                                : Capitalize(text.text());
  return Changed(text, changed, text.markup());
}

Value Interpreter::Range(const CallArgs& args) {
  int64_t bounds[3] = {0, 0, 1};
  const size_t count = args.positional.size();
  if (count < 1 || count > 3) return Fail("TypeError", "range expected 1 to 3 arguments");
  for (size_t i = 0; i < count; ++i) {
    const Value& value = args.positional[i];
    if (!value.small_int()) {
      return Fail("TypeError", absl::StrCat("'", TypeName(value),
                                            "' object cannot be interpreted as an integer"));
    }
    bounds[count == 1 ? 1 : i] = value.integer;
  }
  if (bounds[2] == 0) return Fail("ValueError", "range() arg 3 must not be zero");
  std::vector<Value> items;
  for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1]; i += bounds[2]) {
    if (static_cast<int64_t>(items.size()) >= kRangeMax) {
      return Fail("OverflowError",
                  absl::StrCat("Range too big. The sandbox blocks ranges larger than MAX_RANGE (",
                               kRangeMax, ")."));
    }
    items.push_back(Value::Int(i));
  }
  if (!Step(static_cast<int64_t>(items.size()))) return Value::Error();
  const Value range = MakeList(arena_, items);
  range.list->of = ListOf::kRange;
  range.list->shown = arena_.Copy(
      bounds[2] == 1 ? absl::StrCat("range(", bounds[0], ", ", bounds[1], ")")
                     : absl::StrCat("range(", bounds[0], ", ", bounds[1], ", ", bounds[2], ")"));
  return range;
}

Value Interpreter::StrftimeNow(const CallArgs& args) {
  const Value format = args.Get(0, "format");
  if (!format.str()) return Fail("TypeError", "strftime_now() takes a format");
  const absl::Time time = absl::FromCivil(clock_.now, absl::UTCTimeZone());
  // Python's datetime.now() has no zone, and this clock no microseconds.
  std::string plain;
  for (size_t i = 0; i < format.text().size(); ++i) {
    const char c = format.text()[i];
    const char next = c == '%' && i + 1 < format.text().size() ? format.text()[i + 1] : 0;
    if (next == 'f') plain += "000000";
    if (next != 'f' && next != 'z' && next != 'Z') plain.push_back(c);
    if (next == '%') plain.push_back(c);
    i += next == 'f' || next == 'z' || next == 'Z' || next == '%';
  }
  const std::string_view text = plain;
  return Value::View(arena_.Copy(
      absl::FormatTime(absl::string_view(text.data(), text.size()), time, absl::UTCTimeZone())));
}

Value Interpreter::CallBuiltin(const BuiltinSpec& builtin, const CallArgs& args) {
  if (builtin.name == "raise_exception") {
    const Value message = args.Get(0, "message");
    return Fail("TemplateError", message.missing() ? "" : std::string(Text(message).text()));
  }
  if (builtin.name == "range") return Range(args);
  if (builtin.name == "strftime_now") return StrftimeNow(args);
  const Value dict = MakeDict(arena_);
  for (const Value& first : args.positional) {
    if (first.kind != Kind::kDict) {
      return Fail("NotImplementedError",
                  absl::StrCat(std::string(builtin.name), "() takes a mapping and keywords"));
    }
    for (size_t i = 0; i < first.dict->count; ++i) {
      dict.dict->Set(arena_, first.dict->entries[i].key, first.dict->entries[i].value);
    }
  }
  for (const auto& [name, value] : args.keywords) dict.dict->Set(arena_, Value::View(name), value);
  if (builtin.name == "dict") return dict;
  NamespaceObject* const space = arena_.New<NamespaceObject>();
  space->attributes = dict.dict;
  Value value = Value::Of(Kind::kNamespace);
  value.space = space;
  return value;
}

}  // namespace tessera::tokenizer::jinja

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/big_int.h"
#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/text_format.h"
#include "tokenizer/chat_template/unicode.h"

namespace tessera::tokenizer::jinja {

Value CallArgs::Get(size_t index, std::string_view name) const {
  if (index < positional.size()) return positional[index];
  for (const auto& [key, value] : keywords) {
    if (key == name) return value;
  }
  return Value();
}

Value Interpreter::Undefined(std::string_view name) {
  UndefinedObject* const object = arena_.New<UndefinedObject>();
  object->name = Value::View(arena_.Copy(name));
  Value value = Value::Of(Kind::kUndefined);
  value.undefined = object;
  return value;
}

Value Interpreter::UndefinedUse(const Value& value) {
  const UndefinedObject& object = *value.undefined;
  const std::string name = ReprText(object.name.text());
  if (object.security) {
    return Fail("SecurityError", absl::StrCat("access to attribute ", name, " of '",
                                              TypeName(object.owner), "' object is unsafe."));
  }
  if (object.owner.missing()) {
    return Fail("UndefinedError", absl::StrCat(name, " is undefined"));
  }
  const std::string owner =
      object.owner.none() ? "None" : absl::StrCat("'", TypeName(object.owner), " object'");
  if (object.owner.none()) {
    return Fail("UndefinedError", absl::StrCat("'None' has no attribute ", name));
  }
  return Fail("UndefinedError", absl::StrCat(owner, " has no attribute ", name));
}

Value Interpreter::Eval(const Expr& e) {
  if (!Step()) return Value::Error();
  if (depth_ >= limits_.depth_max) {
    return LimitReached("depth", absl::StrCat("nested deeper than ", limits_.depth_max));
  }
  ++depth_;
  const Value value = EvalInner(e);
  --depth_;
  return value;
}

// Long because it has one case a kind of expression.
Value Interpreter::EvalInner(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kConst:
    case ExprKind::kData:
      return e.constant;
    case ExprKind::kName:
      return Lookup(e.name);
    case ExprKind::kTuple:
    case ExprKind::kList:
      return EvalSequence(e);
    case ExprKind::kDict:
      return EvalDict(e);
    case ExprKind::kGetattr: {
      const Value owner = Eval(*e.a);
      return owner.failed() ? owner : Attribute(owner, e.name);
    }
    case ExprKind::kGetitem: {
      const Value owner = Eval(*e.a);
      if (owner.failed()) return owner;
      if (e.b->kind == ExprKind::kSlice) return EvalSlice(owner, *e.b);
      const Value key = Eval(*e.b);
      return key.failed() ? key : Item(owner, key);
    }
    case ExprKind::kSlice:
      return Fail("TypeError", "a slice stands alone");
    case ExprKind::kCall:
      return EvalCall(e);
    case ExprKind::kFilter: {
      const Value input = Eval(*e.a);
      return input.failed() ? input : ApplyFilter(e, input);
    }
    case ExprKind::kTest: {
      const Value input = Eval(*e.a);
      return input.failed() ? input : ApplyTest(e, input);
    }
    case ExprKind::kNot: {
      const Value value = Eval(*e.a);
      return value.failed() ? value : Value::Bool(!Truth(value));
    }
    case ExprKind::kNeg:
    case ExprKind::kPos: {
      const Value value = Eval(*e.a);
      if (value.failed()) return value;
      if (value.undef()) return UndefinedUse(value);
      if (!value.number()) {
        return Fail("TypeError", absl::StrCat("bad operand type for unary ",
                                              e.kind == ExprKind::kNeg ? "-" : "+", ": '",
                                              TypeName(value), "'"));
      }
      if (e.kind == ExprKind::kPos)
        return value.kind == Kind::kBool ? Value::Int(value.integer) : value;
      if (value.kind == Kind::kFloat) return Value::Float(-value.real);
      return ToValue(arena_, Negate(BigInt::OfValue(value)));
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      const Value left = Eval(*e.a);
      if (left.failed() || Truth(left) == (e.kind == ExprKind::kOr)) return left;
      return Eval(*e.b);
    }
    case ExprKind::kBinary:
      return EvalBinary(e);
    case ExprKind::kConcat:
      return EvalConcat(e);
    case ExprKind::kCompare:
      return EvalCompare(e);
    case ExprKind::kCond: {
      const Value condition = Eval(*e.b);
      if (condition.failed()) return condition;
      if (Truth(condition)) return Eval(*e.a);
      if (e.c != nullptr) return Eval(*e.c);
      return Undefined("the inline if-expression");
    }
  }
  return Fail("NotImplementedError", "this expression is not supported");
}

Value Interpreter::Lookup(std::string_view name) {
  const auto find = [&](size_t begin, size_t end) -> const Value* {
    for (size_t i = end; i > begin; --i) {
      const Scope& scope = scopes_[i - 1];
      for (auto it = scope.rbegin(); it != scope.rend(); ++it) {
        if (it->first == name) return &it->second;
      }
    }
    return nullptr;
  };
  const Value* found = find(frame_, scopes_.size());
  if (found == nullptr && frame_ > 0) found = find(0, 1);
  if (found == nullptr && context_ != nullptr) found = context_->FindText(name);
  if (found != nullptr) return *found;
  if (const BuiltinSpec* builtin = FindBuiltin(name)) {
    Value value = Value::Of(Kind::kBuiltin);
    value.builtin = builtin;
    return value;
  }
  return Undefined(name);
}

Value Interpreter::EvalSequence(const Expr& e) {
  std::vector<Value> items;
  items.reserve(e.items.size());
  for (const Expr* item : e.items) {
    items.push_back(Eval(*item));
    if (items.back().failed()) return Value::Error();
  }
  return MakeList(arena_, items, e.kind == ExprKind::kTuple ? Kind::kTuple : Kind::kList);
}

Value Interpreter::EvalDict(const Expr& e) {
  const Value dict = MakeDict(arena_);
  for (size_t i = 0; i + 1 < e.items.size(); i += 2) {
    const Value key = Eval(*e.items[i]);
    const Value value = key.failed() ? key : Eval(*e.items[i + 1]);
    if (value.failed()) return value;
    uint64_t hash = 0;
    if (!HashOf(key, hash)) {
      return Fail("TypeError", absl::StrCat("unhashable type: '", TypeName(key), "'"));
    }
    dict.dict->Set(arena_, key, value);
  }
  return dict;
}

bool Interpreter::EvalArguments(const Expr& e, CallArgs& args) {
  for (const Expr* item : e.items) {
    args.positional.push_back(Eval(*item));
    if (args.positional.back().failed()) return false;
  }
  for (const auto& [name, value] : e.keywords) {
    args.keywords.emplace_back(name, Eval(*value));
    if (args.keywords.back().second.failed()) return false;
  }
  return true;
}

Value Interpreter::EvalCall(const Expr& e) {
  const Value callee = Eval(*e.a);
  CallArgs args;
  if (callee.failed() || !EvalArguments(e, args)) return Value::Error();
  line_ = e.line;
  switch (callee.kind) {
    case Kind::kMacro:
      return CallMacro(*callee.macro, args);
    case Kind::kLoop:
      return CallLoop(*callee.loop, args);
    case Kind::kBuiltin:
      return CallBuiltin(*callee.builtin, args);
    case Kind::kMethod:
      return CallMethod(*callee.method, args);
    case Kind::kUndefined:
      return UndefinedUse(callee);
    default:
      return Fail("TypeError", absl::StrCat("'", TypeName(callee), "' object is not callable"));
  }
}

Value Interpreter::EvalConcat(const Expr& e) {
  TextBuilder text;
  for (const Expr* item : e.items) {
    const Value value = Eval(*item);
    if (value.failed()) return value;
    AppendText(value, text);
  }
  return Finish(arena_, text);
}

Value Interpreter::Add(const Value& a, const Value& b) {
  if (a.str() && b.str()) {
    const bool markup = a.markup() || b.markup();
    TextBuilder text;
    text.Append(markup ? Escaped(a, false) : a);
    text.Append(markup ? Escaped(b, false) : b);
    return Finish(arena_, text, markup);
  }
  if (a.kind == b.kind && a.sequence() && a.list->of == ListOf::kItems &&
      b.list->of == ListOf::kItems) {
    std::vector<Value> items(a.list->items, a.list->items + a.list->count);
    items.insert(items.end(), b.list->items, b.list->items + b.list->count);
    if (!Step(static_cast<int64_t>(items.size()))) return Value::Error();
    return MakeList(arena_, items, a.kind);
  }
  return Arithmetic(Op::kAdd, a, b);
}

Value Interpreter::Arithmetic(Op op, const Value& a, const Value& b) {
  static constexpr const char* kNames[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
  const char* const name = kNames[static_cast<int>(op)];
  if (!a.number() || !b.number()) {
    return Fail("TypeError", absl::StrCat("unsupported operand type(s) for ", name, ": '",
                                          TypeName(a), "' and '", TypeName(b), "'"));
  }
  const auto real = [](const Value& v) {
    return v.kind == Kind::kFloat ? v.real : BigInt::OfValue(v).ToDouble();
  };
  const bool divides = op == Op::kDiv || op == Op::kFloorDiv || op == Op::kMod;
  if (divides && real(b) == 0) {
    const bool whole = a.integral() && b.integral();
    return Fail("ZeroDivisionError", op == Op::kDiv
                                         ? (whole ? "division by zero" : "float division by zero")
                                     : whole ? "integer division or modulo by zero"
                                             : "float floor division by zero");
  }
  if (op == Op::kDiv || a.kind == Kind::kFloat || b.kind == Kind::kFloat) {
    const double x = real(a), y = real(b);
    switch (op) {
      case Op::kAdd:
        return Value::Float(x + y);
      case Op::kSub:
        return Value::Float(x - y);
      case Op::kMul:
        return Value::Float(x * y);
      case Op::kDiv:
        return Value::Float(x / y);
      case Op::kFloorDiv:
        return Value::Float(std::floor(x / y));
      case Op::kMod:
        return Value::Float(x - std::floor(x / y) * y);
      default:
        return Value::Float(std::pow(x, y));
    }
  }
  const BigInt x = BigInt::OfValue(a), y = BigInt::OfValue(b);
  if (x.limbs.size() + y.limbs.size() > BigInt::kLimbsMax) {
    return Fail("OverflowError", "an integer has become too large");
  }
  switch (op) {
    case Op::kAdd:
      return ToValue(arena_, jinja::Add(x, y));
    case Op::kSub:
      return ToValue(arena_, jinja::Add(x, Negate(y)));
    case Op::kMul:
      return ToValue(arena_, Multiply(x, y));
    case Op::kPow: {
      if (y.negative) return Value::Float(std::pow(x.ToDouble(), y.ToDouble()));
      if (!y.FitsInt64() || y.ToInt64() > 65536) {
        return Fail("OverflowError", "an integer has become too large");
      }
      BigInt result = BigInt::Of(1);
      for (int64_t i = 0; i < y.ToInt64(); ++i) {
        if (!Step()) return Value::Error();
        result = Multiply(result, x);
        if (result.limbs.size() > BigInt::kLimbsMax) {
          return Fail("OverflowError", "an integer has become too large");
        }
      }
      return ToValue(arena_, result);
    }
    default: {
      BigInt quotient, remainder;
      DivideFloor(x, y, quotient, remainder);
      return ToValue(arena_, op == Op::kMod ? remainder : quotient);
    }
  }
}

Value Interpreter::EvalBinary(const Expr& e) {
  const Value a = Eval(*e.a);
  const Value b = a.failed() ? a : Eval(*e.b);
  if (b.failed()) return b;
  line_ = e.line;
  if (a.undef()) return UndefinedUse(a);
  if (b.undef()) return UndefinedUse(b);
  if (e.op == Op::kAdd) return Add(a, b);
  if (e.op == Op::kMul && (a.str() || b.str()) && (a.small_int() || b.small_int())) {
    const Value& text = a.str() ? a : b;
    const int64_t times = std::max<int64_t>(0, a.str() ? b.integer : a.integer);
    if (text.bytes != 0 && (times > static_cast<int64_t>(limits_.value_bytes_max) ||
                            !arena_.CanTake(text.bytes * static_cast<size_t>(times)))) {
      return LimitReached("value_bytes", "a repeated text is too long");
    }
    TextBuilder builder;
    for (int64_t i = 0; i < times; ++i) builder.Append(text);
    return Finish(arena_, builder, text.markup());
  }
  if (e.op == Op::kMul && ((a.sequence() && b.small_int()) || (b.sequence() && a.small_int()))) {
    const Value& list = a.sequence() ? a : b;
    const int64_t times = std::max<int64_t>(0, a.sequence() ? b.integer : a.integer);
    if (list.list->of != ListOf::kItems) return Arithmetic(e.op, a, b);
    if (list.list->count != 0 &&
        (times > limits_.steps_max ||
         !arena_.CanTake(list.list->count * sizeof(Value) * static_cast<size_t>(times)))) {
      return LimitReached("value_bytes", "a repeated list is too long");
    }
    std::vector<Value> items;
    for (int64_t i = 0; i < times; ++i) {
      if (!Step(static_cast<int64_t>(list.list->count))) return Value::Error();
      items.insert(items.end(), list.list->items, list.list->items + list.list->count);
    }
    return MakeList(arena_, items, list.kind);
  }
  if (e.op == Op::kMod && a.str()) {
    return Fail("NotImplementedError", "formatting with % is not supported");
  }
  return Arithmetic(e.op, a, b);
}

std::optional<bool> Interpreter::Contains(const Value& container, const Value& item) {
  if (container.str()) {
    if (!item.str()) {
      Fail("TypeError",
           absl::StrCat("'in <string>' requires string as left operand, not ", TypeName(item)));
      return std::nullopt;
    }
    return container.text().find(item.text()) != std::string_view::npos;
  }
  if (container.kind == Kind::kDict) {
    uint64_t hash = 0;
    if (!HashOf(item, hash)) {
      Fail("TypeError", absl::StrCat("unhashable type: '", TypeName(item), "'"));
      return std::nullopt;
    }
    return container.dict->Find(item) != nullptr;
  }
  if (container.none() || container.number()) {
    Fail("TypeError", absl::StrCat("argument of type '", TypeName(container), "' is not iterable"));
    return std::nullopt;
  }
  std::vector<Value> items;
  if (!Items(container, items)) return std::nullopt;
  for (const Value& candidate : items) {
    if (Equal(candidate, item)) return true;
  }
  return false;
}

std::optional<bool> Interpreter::Compare(Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::kEq:
      return Equal(a, b);
    case Op::kNe:
      return !Equal(a, b);
    case Op::kIn:
      return Contains(b, a);
    case Op::kNotIn: {
      const std::optional<bool> in = Contains(b, a);
      if (!in.has_value()) return in;
      return !*in;
    }
    default:
      break;
  }
  int order = 0;
  if (a.undef() || b.undef()) {
    UndefinedUse(a.undef() ? a : b);
    return std::nullopt;
  }
  const bool lists = a.kind == b.kind && a.sequence() && a.list->of == ListOf::kItems &&
                     b.list->of == ListOf::kItems;
  if (lists && !Equal(a, b)) {
    bool less = false;
    if (!Less(a, b, less)) return std::nullopt;
    order = less ? -1 : 1;
  } else if (lists) {
    order = 0;
  } else if (a.str() && b.str()) {
    order = a.text().compare(b.text());
  } else if (a.number() && b.number()) {
    if (a.kind == Kind::kFloat || b.kind == Kind::kFloat) {
      const double x = a.kind == Kind::kFloat ? a.real : BigInt::OfValue(a).ToDouble();
      const double y = b.kind == Kind::kFloat ? b.real : BigInt::OfValue(b).ToDouble();
      if (std::isnan(x) || std::isnan(y)) return false;
      order = x < y ? -1 : x > y ? 1 : 0;
    } else {
      order = jinja::Compare(BigInt::OfValue(a), BigInt::OfValue(b));
    }
  } else {
    static constexpr const char* kNames[] = {"<", "<=", ">", ">="};
    Fail("TypeError", absl::StrCat("'", kNames[static_cast<int>(op) - static_cast<int>(Op::kLt)],
                                   "' not supported between instances of '", TypeName(a), "' and '",
                                   TypeName(b), "'"));
    return std::nullopt;
  }
  switch (op) {
    case Op::kLt:
      return order < 0;
    case Op::kLe:
      return order <= 0;
    case Op::kGt:
      return order > 0;
    default:
      return order >= 0;
  }
}

Value Interpreter::EvalCompare(const Expr& e) {
  Value left = Eval(*e.a);
  for (size_t i = 0; i < e.items.size(); ++i) {
    const Value right = left.failed() ? left : Eval(*e.items[i]);
    if (right.failed()) return right;
    line_ = e.line;
    const std::optional<bool> holds = Compare(e.compare_ops[i], left, right);
    if (!holds.has_value()) return Value::Error();
    if (!*holds) return Value::Bool(false);
    left = right;
  }
  return Value::Bool(true);
}

Value Interpreter::LoopAttribute(const LoopObject& loop, std::string_view name) {
  const auto count = static_cast<int64_t>(loop.count);
  const auto index = static_cast<int64_t>(loop.index);
  if (name == "index") return Value::Int(index + 1);
  if (name == "index0") return Value::Int(index);
  if (name == "revindex") return Value::Int(count - index);
  if (name == "revindex0") return Value::Int(count - index - 1);
  if (name == "first") return Value::Bool(index == 0);
  if (name == "last") return Value::Bool(index + 1 == count);
  if (name == "length") return Value::Int(count);
  if (name == "depth") return Value::Int(loop.depth);
  if (name == "depth0") return Value::Int(loop.depth - 1);
  if (name == "previtem")
    return index > 0 ? loop.items[index - 1] : Undefined("there is no previous item");
  if (name == "nextitem")
    return index + 1 < count ? loop.items[index + 1] : Undefined("there is no next item");
  return Fail("NotImplementedError", absl::StrCat("loop.", std::string(name), " is not supported"));
}

Value Interpreter::Attribute(const Value& owner, std::string_view name) {
  static constexpr std::string_view kTextMethods[] = {
      "split",        "strip",      "lstrip",    "rstrip",   "startswith",   "endswith",
      "upper",        "lower",      "replace",   "title",    "capitalize",   "isdigit",
      "isdecimal",    "isnumeric",  "isalpha",   "isspace",  "isalnum",      "isascii",
      "isidentifier", "islower",    "isupper",   "swapcase", "casefold",     "splitlines",
      "center",       "ljust",      "rjust",     "zfill",    "join",         "find",
      "rfind",        "index",      "rindex",    "count",    "removeprefix", "removesuffix",
      "partition",    "rpartition", "rsplit",    "format",   "format_map",   "encode",
      "expandtabs",   "translate",  "maketrans", "istitle",  "isprintable"};
  static constexpr std::string_view kDictMethods[] = {"items", "keys", "values", "get", "copy"};
  const auto method = [&](auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  if (owner.undef()) return UndefinedUse(owner);
  if ((owner.str() && method(kTextMethods)) ||
      (owner.kind == Kind::kDict && method(kDictMethods))) {
    MethodObject* const object = arena_.New<MethodObject>();
    object->owner = owner;
    object->name = name;
    Value value = Value::Of(Kind::kMethod);
    value.method = object;
    return value;
  }
  // What the sandbox forbids: methods that change a value, and Python's insides.
  static constexpr std::string_view kDictChanges[] = {"pop", "popitem", "clear", "update",
                                                      "setdefault"};
  static constexpr std::string_view kListChanges[] = {"append", "clear",   "extend", "insert",
                                                      "pop",    "reverse", "remove", "sort"};
  if ((owner.kind == Kind::kDict && method(kDictChanges)) ||
      (owner.kind == Kind::kList && owner.list->of == ListOf::kItems && method(kListChanges)) ||
      name == "__class__") {
    Value forbidden = Undefined(name);
    forbidden.undefined->owner = owner;
    forbidden.undefined->security = true;
    return forbidden;
  }
  if (owner.kind == Kind::kDict) {
    if (const Value* found = owner.dict->FindText(name)) return *found;
  }
  if (owner.kind == Kind::kNamespace) {
    if (const Value* found = owner.space->attributes->FindText(name)) return *found;
  }
  const bool loop_method = owner.kind == Kind::kLoop && (name == "cycle" || name == "changed");
  if (loop_method) {
    MethodObject* const object = arena_.New<MethodObject>();
    object->owner = owner;
    object->name = name;
    Value value = Value::Of(Kind::kMethod);
    value.method = object;
    return value;
  }
  if (owner.kind == Kind::kLoop) return LoopAttribute(*owner.loop, name);
  if (owner.sequence() && owner.list->group && (name == "grouper" || name == "list")) {
    return owner.list->items[name == "list" ? 1 : 0];
  }
  Value missing = Undefined(name);
  missing.undefined->owner = owner;
  return missing;
}

Value Interpreter::Item(const Value& owner, const Value& key) {
  if (owner.undef()) return UndefinedUse(owner);
  if (owner.kind == Kind::kDict) {
    uint64_t hash = 0;
    if (HashOf(key, hash)) {
      if (const Value* found = owner.dict->Find(key)) return *found;
    }
  }
  const bool indexed =
      owner.str() ||
      (owner.sequence() && (owner.list->of == ListOf::kItems || owner.list->of == ListOf::kRange));
  if (key.small_int() && indexed) {
    const auto count =
        static_cast<int64_t>(owner.str() ? CountCodePoints(owner.text()) : owner.list->count);
    const int64_t index = key.integer < 0 ? key.integer + count : key.integer;
    if (index >= 0 && index < count) {
      if (!owner.str()) return owner.list->items[index];
      const size_t begin = OffsetOf(owner.text(), index);
      return Substring(arena_, owner, begin, OffsetOf(owner.text(), index + 1));
    }
  }
  if (key.str()) return Attribute(owner, key.text());
  Value missing = Undefined(Text(key).text());
  missing.undefined->owner = owner;
  return missing;
}

Value Interpreter::EvalSlice(const Value& owner, const Expr& slice) {
  if (owner.undef()) return UndefinedUse(owner);
  Value bounds[3] = {Value::None(), Value::None(), Value::None()};
  const Expr* const parts[3] = {slice.a, slice.b, slice.c};
  for (int i = 0; i < 3; ++i) {
    if (parts[i] == nullptr) continue;
    bounds[i] = Eval(*parts[i]);
    if (bounds[i].failed()) return bounds[i];
    if (!bounds[i].none() && !bounds[i].small_int()) {
      return Fail("TypeError",
                  "slice indices must be integers or None or have an __index__ method");
    }
  }
  const bool sliced = owner.str() || (owner.sequence() && owner.list->of == ListOf::kItems);
  if (!sliced) {
    return Fail("TypeError", absl::StrCat("'", TypeName(owner), "' object is not subscriptable"));
  }
  const auto count =
      static_cast<int64_t>(owner.str() ? CountCodePoints(owner.text()) : owner.list->count);
  const int64_t step = bounds[2].none() ? 1 : bounds[2].integer;
  if (step == 0) return Fail("ValueError", "slice step cannot be zero");
  // Python's rule: negative bounds count from the end, and all are clamped to where a walk can
  // start.
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? count : count - 1;
  const auto bound = [&](const Value& v, int64_t otherwise) {
    if (v.none()) return otherwise;
    const int64_t at = v.integer < 0 ? std::max(v.integer, -count - 1) + count : v.integer;
    return std::clamp(at, low, high);
  };
  const int64_t start = bound(bounds[0], step > 0 ? low : high);
  const int64_t stop = bound(bounds[1], step > 0 ? high : low);
  if (owner.str() && step == 1) {
    if (start >= stop) return Value::View("");
    return Substring(arena_, owner, OffsetOf(owner.text(), start), OffsetOf(owner.text(), stop));
  }
  std::vector<Value> items;
  TextBuilder text;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;
       i += std::clamp<int64_t>(step, -count - 1, count + 1)) {
    if (!Step()) return Value::Error();
    if (owner.str()) {
      text.AppendPart(owner, OffsetOf(owner.text(), i), OffsetOf(owner.text(), i + 1));
    } else {
      items.push_back(owner.list->items[i]);
    }
  }
  return owner.str() ? Finish(arena_, text) : MakeList(arena_, items, owner.kind);
}

}  // namespace tessera::tokenizer::jinja

#include <cmath>

#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/big_int.h"
#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/text_format.h"
#include "tokenizer/chat_template/unicode.h"

namespace tessera::tokenizer::jinja {
namespace {

constexpr int kReprDepthMax = 200;

// A JSON string as json.dumps(ensure_ascii=False) writes it.
void AppendJsonText(const Value& value, TextBuilder& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  const bool from_context = value.flags & kFromContext;
  out.Append("\"", false);
  std::string escaped;
  for (const char c : value.text()) {
    switch (c) {
      case '"':
        escaped += "\\\"";
        break;
      case '\\':
        escaped += "\\\\";
        break;
      case '\n':
        escaped += "\\n";
        break;
      case '\r':
        escaped += "\\r";
        break;
      case '\t':
        escaped += "\\t";
        break;
      case '\b':
        escaped += "\\b";
        break;
      case '\f':
        escaped += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          escaped += "\\u00";
          escaped += kHex[c >> 4];
          escaped += kHex[c & 15];
        } else {
          escaped += c;
        }
    }
  }
  // Of a mixed text any part may come from outside, so all of it counts as such.
  out.Append(escaped, from_context || (value.flags & kMixed));
  out.Append("\"", false);
}

}  // namespace

const char* Interpreter::TypeName(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kBigInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kStr:
      return "str";
    case Kind::kList:
      return value.list->of == ListOf::kGenerator ? "generator"
             : value.list->of == ListOf::kRange   ? "range"
             : value.list->of == ListOf::kView    ? "dict_view"
                                                  : "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kRange:
      return "range";
    case Kind::kDictView:
      return "dict_items";
    case Kind::kMacro:
      return "Macro";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kNamespace:
      return "Namespace";
    default:
      return "object";
  }
}

void Interpreter::AppendText(const Value& value, TextBuilder& out) {
  if (value.str()) {
    out.Append(value);
  } else if (!value.undef()) {
    AppendRepr(value, out, 0);
  }
}

Value Interpreter::Text(const Value& value) {
  if (value.str()) return value;
  TextBuilder text;
  AppendText(value, text);
  return Finish(arena_, text);
}

void Interpreter::AppendRepr(const Value& value, TextBuilder& out, int depth) {
  if (!Step()) return;
  if (depth > kReprDepthMax) {
    LimitReached("depth", "a value is nested too deeply to be printed");
    return;
  }
  if (value.sequence() && value.list->of == ListOf::kGenerator) {
    Fail("NotImplementedError", "printing a generator is not supported; use |list or |join");
    return;
  }
  if (value.sequence() && value.list->of == ListOf::kRange)
    return out.Append(value.list->shown, false);
  const bool view = value.sequence() && value.list->of == ListOf::kView;
  const auto list = [&](const char* open, const char* close) {
    if (view) out.Append(absl::StrCat(std::string(value.list->shown), "("), false);
    out.Append(open, false);
    for (size_t i = 0; i < value.list->count; ++i) {
      if (i > 0) out.Append(", ", false);
      AppendRepr(value.list->items[i], out, depth + 1);
    }
    if (value.kind == Kind::kTuple && value.list->count == 1) out.Append(",", false);
    out.Append(close, false);
    if (view) out.Append(")", false);
  };
  switch (value.kind) {
    case Kind::kNone:
      return out.Append("None", false);
    case Kind::kBool:
      return out.Append(value.is_true() ? "True" : "False", false);
    case Kind::kInt:
    case Kind::kBigInt:
      return out.Append(BigInt::OfValue(value).ToString(), false);
    case Kind::kFloat:
      return out.Append(FloatText(value.real), false);
    case Kind::kStr:
      if (value.markup()) out.Append("Markup(", false);
      out.Append(ReprText(value.text()), value.origin() != 0);
      if (value.markup()) out.Append(")", false);
      return;
    case Kind::kList:
      return list("[", "]");
    case Kind::kTuple:
      return list("(", ")");
    case Kind::kUndefined:
      return out.Append("Undefined", false);
    case Kind::kDict:
      out.Append("{", false);
      for (size_t i = 0; i < value.dict->count; ++i) {
        if (i > 0) out.Append(", ", false);
        AppendRepr(value.dict->entries[i].key, out, depth + 1);
        out.Append(": ", false);
        AppendRepr(value.dict->entries[i].value, out, depth + 1);
      }
      return out.Append("}", false);
    default:
      Fail("NotImplementedError",
           absl::StrCat("printing a ", TypeName(value), " is not supported"));
  }
}

// Long because it has one case a kind of value.
bool Interpreter::AppendJson(const Value& value, TextBuilder& out, int indent, int level) {
  if (!Step()) return false;
  if (level > kReprDepthMax) {
    LimitReached("depth", "a value is nested too deeply for tojson");
    return false;
  }
  const auto line = [&](int at) {
    if (indent >= 0) out.Append("\n" + std::string(static_cast<size_t>(indent) * at, ' '), false);
  };
  const char* const between = indent >= 0 ? "," : ", ";
  switch (value.kind) {
    case Kind::kNone:
      out.Append("null", false);
      return true;
    case Kind::kBool:
      out.Append(value.is_true() ? "true" : "false", false);
      return true;
    case Kind::kInt:
    case Kind::kBigInt:
      out.Append(BigInt::OfValue(value).ToString(), false);
      return true;
    case Kind::kFloat:
      out.Append(std::isnan(value.real)   ? "NaN"
                 : std::isinf(value.real) ? (value.real > 0 ? "Infinity" : "-Infinity")
                                          : FloatText(value.real),
                 false);
      return true;
    case Kind::kStr:
      AppendJsonText(value, out);
      return true;
    case Kind::kList:
    case Kind::kTuple: {
      if (value.list->of != ListOf::kItems) {
        Fail("TypeError",
             absl::StrCat("Object of type ", TypeName(value), " is not JSON serializable"));
        return false;
      }
      out.Append("[", false);
      for (size_t i = 0; i < value.list->count; ++i) {
        if (i > 0) out.Append(between, false);
        line(level + 1);
        if (!AppendJson(value.list->items[i], out, indent, level + 1)) return false;
      }
      if (value.list->count > 0) line(level);
      out.Append("]", false);
      return true;
    }
    case Kind::kDict: {
      out.Append("{", false);
      for (size_t i = 0; i < value.dict->count; ++i) {
        const Value& key = value.dict->entries[i].key;
        if (i > 0) out.Append(between, false);
        line(level + 1);
        if (!key.str() && !key.number() && !key.none()) {
          Fail("TypeError",
               absl::StrCat("keys must be str, int, float, bool or None, not ", TypeName(key)));
          return false;
        }
        TextBuilder plain;
        if (!key.str() && !AppendJson(key, plain, -1, level)) return false;
        AppendJsonText(key.str() ? key : Finish(arena_, plain), out);
        out.Append(": ", false);
        if (!AppendJson(value.dict->entries[i].value, out, indent, level + 1)) return false;
      }
      if (value.dict->count > 0) line(level);
      out.Append("}", false);
      return true;
    }
    default:
      Fail("TypeError",
           absl::StrCat("Object of type ", TypeName(value), " is not JSON serializable"));
      return false;
  }
}

Value Interpreter::ToJson(const Value& value, const CallArgs& args) {
  for (const auto& [name, given] : args.keywords) {
    if (name != "indent" && name != "ensure_ascii") {
      return Fail("NotImplementedError",
                  absl::StrCat("tojson(", std::string(name), "=) is not supported"));
    }
  }
  const Value ascii = args.Get(0, "ensure_ascii");
  if (!ascii.missing() && Truth(ascii)) {
    return Fail("NotImplementedError", "tojson(ensure_ascii=true) is not supported");
  }
  const Value indent = args.Get(1, "indent");
  constexpr int64_t kIndentMax = 64;
  if (!indent.missing() && !indent.none() &&
      (!indent.small_int() || indent.integer < 0 || indent.integer > kIndentMax)) {
    return Fail("NotImplementedError", "tojson(indent=) takes a number of 0 to 64");
  }
  TextBuilder text;
  const bool indented = !indent.missing() && !indent.none();
  if (!AppendJson(value, text, indented ? static_cast<int>(indent.integer) : -1, 0))
    return Value::Error();
  return Finish(arena_, text);
}

}  // namespace tessera::tokenizer::jinja

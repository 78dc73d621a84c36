#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/big_int.h"
#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/text_format.h"

namespace tessera::tokenizer::jinja {

Interpreter::Interpreter(const Tree& tree, const nlohmann::ordered_json& context,
                         const RenderLimits& limits, const RenderClock& clock)
    : tree_(tree), limits_(limits), clock_(clock), arena_(limits.value_bytes_max) {
  if (clock_.monotonic) started_ = clock_.monotonic();
  scopes_.emplace_back();
  const Value value = FromJson(context, 0);
  if (value.kind == Kind::kDict) context_ = value.dict;
}

bool Interpreter::Run(TextBuilder& out) {
  if (!error_.has_value()) RunBody(tree_.body, out);
  return !error_.has_value();
}

Value Interpreter::FromJson(const nlohmann::ordered_json& json, int depth) {
  if (depth > limits_.depth_max) return LimitReached("depth", "the context is nested too deeply");
  if (arena_.over()) return LimitReached("value_bytes", "the context is too large");
  switch (json.type()) {
    case nlohmann::ordered_json::value_t::boolean:
      return Value::Bool(json.get<bool>());
    case nlohmann::ordered_json::value_t::number_integer:
      return Value::Int(json.get<int64_t>());
    case nlohmann::ordered_json::value_t::number_unsigned:
      return ToValue(arena_, BigInt::OfUnsigned(json.get<uint64_t>()));
    case nlohmann::ordered_json::value_t::number_float:
      return Value::Float(json.get<double>());
    case nlohmann::ordered_json::value_t::string:
      return Value::View(json.get_ref<const std::string&>(), kFromContext);
    case nlohmann::ordered_json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) {
        items.push_back(FromJson(item, depth + 1));
        if (items.back().failed()) return Value::Error();
      }
      return MakeList(arena_, items);
    }
    case nlohmann::ordered_json::value_t::object: {
      const Value dict = MakeDict(arena_);
      for (auto it = json.begin(); it != json.end(); ++it) {
        const Value value = FromJson(it.value(), depth + 1);
        if (value.failed()) return value;
        dict.dict->Set(arena_, Value::View(it.key(), kFromContext), value);
      }
      return dict;
    }
    default:
      return Value::None();
  }
}

Value Interpreter::Fail(std::string type, std::string message) {
  if (!error_.has_value()) {
    error_ = TemplateError{.type = std::move(type), .message = std::move(message), .line = line_};
  }
  return Value::Error();
}

Value Interpreter::LimitReached(const char* limit, const std::string& message) {
  if (!error_.has_value()) {
    error_ = TemplateError{.type = "LimitError", .message = message, .line = line_, .limit = limit};
  }
  return Value::Error();
}

bool Interpreter::Step(int64_t steps) {
  constexpr int64_t kClockEvery = 1024;
  const int64_t before = steps_;
  steps_ += steps;
  if (steps_ > limits_.steps_max) {
    LimitReached("steps", absl::StrCat("more than ", limits_.steps_max, " steps"));
  } else if (arena_.over()) {
    LimitReached("value_bytes",
                 absl::StrCat("values of more than ", limits_.value_bytes_max, " bytes"));
  } else if (clock_.monotonic && before / kClockEvery != steps_ / kClockEvery &&
             clock_.monotonic() - started_ > limits_.time_max) {
    LimitReached("time", absl::StrCat("longer than ", absl::FormatDuration(limits_.time_max)));
  }
  return !error_.has_value();
}

Interpreter::Flow Interpreter::RunBody(const Body& body, TextBuilder& out) {
  for (const Stmt* stmt : body) {
    const Flow flow = RunStmt(*stmt, out);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::RunStmt(const Stmt& stmt, TextBuilder& out) {
  if (!Step()) return Flow::kStop;
  line_ = stmt.line;
  switch (stmt.kind) {
    case StmtKind::kOutput:
      for (const Expr* e : stmt.exprs) {
        const Value value = Eval(*e);
        if (value.failed() || !Print(value, out)) return Flow::kStop;
      }
      return Flow::kNext;
    case StmtKind::kSet: {
      const Value value = Eval(*stmt.expr);
      if (value.failed() || !Assign(stmt.targets[0], value)) return Flow::kStop;
      return Flow::kNext;
    }
    case StmtKind::kSetBlock: {
      TextBuilder text;
      scopes_.emplace_back();
      const Flow flow = RunBody(stmt.body, text);
      scopes_.pop_back();
      if (flow != Flow::kNext) return flow;
      Value value = Finish(arena_, text);
      if (stmt.expr != nullptr) value = ApplyFilter(*stmt.expr, value);
      if (value.failed() || !Assign(stmt.targets[0], value)) return Flow::kStop;
      return Flow::kNext;
    }
    case StmtKind::kIf:
      return RunIf(stmt, out);
    case StmtKind::kFor:
      return RunFor(stmt, out);
    case StmtKind::kMacro: {
      MacroObject* const macro = arena_.New<MacroObject>();
      macro->stmt = &stmt;
      Value value = Value::Of(Kind::kMacro);
      value.macro = macro;
      scopes_[frame_].emplace_back(stmt.name, value);
      return Flow::kNext;
    }
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
    case StmtKind::kScope: {
      scopes_.emplace_back();
      const Flow flow = RunBody(stmt.body, out);
      scopes_.pop_back();
      return flow;
    }
    default:
      Fail("NotImplementedError", "this statement is not supported");
      return Flow::kStop;
  }
}

Interpreter::Flow Interpreter::RunIf(const Stmt& stmt, TextBuilder& out) {
  const Value condition = Eval(*stmt.expr);
  if (condition.failed()) return Flow::kStop;
  if (Truth(condition)) return RunBody(stmt.body, out);
  for (const Stmt* elif : stmt.elifs) {
    const Value other = Eval(*elif->expr);
    if (other.failed()) return Flow::kStop;
    if (Truth(other)) return RunBody(elif->body, out);
  }
  return RunBody(stmt.orelse, out);
}

bool Interpreter::FilterItems(const Stmt& stmt, std::vector<Value>& items) {
  std::vector<Value> kept;
  for (const Value& item : items) {
    scopes_.emplace_back();
    const bool assigned = Assign(stmt.targets[0], item);
    const Value condition = assigned ? Eval(*stmt.condition) : Value::Error();
    scopes_.pop_back();
    if (condition.failed()) return false;
    if (Truth(condition)) kept.push_back(item);
  }
  items = std::move(kept);
  return true;
}

Interpreter::Flow Interpreter::RunFor(const Stmt& stmt, TextBuilder& out) {
  const Value iterable = Eval(*stmt.expr);
  std::vector<Value> items;
  if (iterable.failed() || !Items(iterable, items)) return Flow::kStop;
  if (stmt.condition != nullptr && !FilterItems(stmt, items)) return Flow::kStop;
  if (items.empty()) return RunBody(stmt.orelse, out);
  LoopObject* const loop = arena_.New<LoopObject>();
  loop->items = MakeList(arena_, items).list->items;
  loop->count = items.size();
  Value loop_value = Value::Of(Kind::kLoop);
  loop_value.loop = loop;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!Step()) return Flow::kStop;
    loop->index = i;
    scopes_.emplace_back();
    scopes_.back().emplace_back("loop", loop_value);
    const Flow flow = Assign(stmt.targets[0], items[i]) ? RunBody(stmt.body, out) : Flow::kStop;
    scopes_.pop_back();
    if (flow == Flow::kStop) return flow;
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

bool Interpreter::Assign(const Target& target, const Value& value) {
  if (target.kind == Target::Kind::kName) {
    for (auto& [name, held] : scopes_.back()) {
      if (name == target.name) {
        held = value;
        return true;
      }
    }
    scopes_.back().emplace_back(target.name, value);
    return true;
  }
  if (target.kind == Target::Kind::kAttribute) {
    const Value owner = Lookup(target.name);
    if (owner.kind != Kind::kNamespace) {
      Fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
      return false;
    }
    owner.space->attributes->Set(arena_, Value::View(target.attribute), value);
    return true;
  }
  std::vector<Value> items;
  if (!Items(value, items)) return false;
  if (items.size() < target.items.size()) {
    Fail("ValueError", absl::StrCat("not enough values to unpack (expected ", target.items.size(),
                                    ", got ", items.size(), ")"));
    return false;
  }
  if (items.size() > target.items.size()) {
    Fail("ValueError",
         absl::StrCat("too many values to unpack (expected ", target.items.size(), ")"));
    return false;
  }
  for (size_t i = 0; i < items.size(); ++i) {
    if (!Assign(target.items[i], items[i])) return false;
  }
  return true;
}

Value Interpreter::CallMacro(const Stmt& stmt, const CallArgs& args) {
  const size_t count = stmt.parameters.size();
  if (args.positional.size() > count) {
    return Fail("TypeError", absl::StrCat("macro ", ReprText(stmt.name), " takes not more than ",
                                          count, " argument(s)"));
  }
  for (const auto& [name, value] : args.keywords) {
    const auto found = std::find(stmt.parameters.begin(), stmt.parameters.end(), name);
    if (found == stmt.parameters.end()) {
      return Fail("TypeError",
                  absl::StrCat("macro ", ReprText(stmt.name), " takes no keyword argument ",
                               ReprText(std::string(name))));
    }
    if (static_cast<size_t>(found - stmt.parameters.begin()) < args.positional.size()) {
      return Fail("TypeError",
                  absl::StrCat("macro ", ReprText(stmt.name), " got multiple values for argument ",
                               ReprText(std::string(name))));
    }
  }
  const size_t outer_frame = std::exchange(frame_, scopes_.size());
  scopes_.emplace_back();
  bool ok = true;
  for (size_t i = 0; ok && i < count; ++i) {
    Value value = args.Get(i, stmt.parameters[i]);
    const size_t first_default = count - stmt.defaults.size();
    if (value.missing()) {
      value = i >= first_default ? Eval(*stmt.defaults[i - first_default])
                                 : Undefined(stmt.parameters[i]);
    }
    ok = !value.failed();
    scopes_.back().emplace_back(stmt.parameters[i], value);
  }
  TextBuilder text;
  if (ok) ok = RunBody(stmt.body, text) == Flow::kNext;
  scopes_.resize(frame_);
  frame_ = outer_frame;
  return ok ? Finish(arena_, text) : Value::Error();
}

bool Interpreter::Print(const Value& value, TextBuilder& out) {
  const size_t before = out.text().size();
  AppendText(value, out);
  output_bytes_ += out.text().size() - before;
  if (output_bytes_ > limits_.output_bytes_max) {
    LimitReached("output_bytes",
                 absl::StrCat("more than ", limits_.output_bytes_max, " bytes of text"));
  }
  return !error_.has_value();
}

}  // namespace tessera::tokenizer::jinja

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/big_int.h"
#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/text_format.h"
#include "tokenizer/chat_template/unicode.h"

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
  top_ = &out;
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
      if (stmt.expr != nullptr) value = ApplyChain(*stmt.expr, value);
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
    case StmtKind::kWith:
      return RunWith(stmt, out);
    case StmtKind::kCallBlock:
      return RunCallBlock(stmt, out);
    case StmtKind::kFilterBlock:
      return RunFilterBlock(stmt, out);
    case StmtKind::kNeedsLoader:
      Fail("TypeError", "no loader for this environment specified");
      return Flow::kStop;
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
  if (iterable.failed()) return Flow::kStop;
  return RunLoop(stmt, iterable, 1, out);
}

Interpreter::Flow Interpreter::RunLoop(const Stmt& stmt, const Value& iterable, int depth,
                                       TextBuilder& out) {
  std::vector<Value> items;
  if (!Items(iterable, items)) return Flow::kStop;
  if (stmt.condition != nullptr && !FilterItems(stmt, items)) return Flow::kStop;
  if (items.empty()) return RunBody(stmt.orelse, out);
  LoopObject* const loop = arena_.New<LoopObject>();
  loop->items = MakeList(arena_, items).list->items;
  loop->count = items.size();
  loop->depth = depth;
  loop->recursive = stmt.recursive ? &stmt : nullptr;
  loop->frame = frame_;
  loop->scope_count = scopes_.size();
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

// The parameters of a macro or caller into the newest scope.
bool Interpreter::BindParameters(const Stmt& stmt, const CallArgs& args) {
  const size_t count = stmt.parameters.size();
  const bool is_macro = stmt.kind == StmtKind::kMacro;
  const std::string shown = is_macro ? ReprText(stmt.name) : "'caller'";
  if (args.positional.size() > count && !stmt.uses_varargs) {
    Fail("TypeError",
         absl::StrCat("macro ", shown, " takes not more than ", count, " argument(s)"));
    return false;
  }
  const Value rest = MakeDict(arena_);
  Value caller;
  for (const auto& [name, value] : args.keywords) {
    const auto found = std::find(stmt.parameters.begin(), stmt.parameters.end(), name);
    const bool taken =
        found != stmt.parameters.end() &&
        static_cast<size_t>(found - stmt.parameters.begin()) >= args.positional.size();
    if (taken) continue;
    if (name == "caller" && stmt.uses_caller) {
      caller = value;
    } else if (stmt.uses_keywords) {
      rest.dict->Set(arena_, Value::View(name), value);
    } else {
      Fail("TypeError", absl::StrCat("macro ", shown, " takes no keyword argument ",
                                     ReprText(std::string(name))));
      return false;
    }
  }
  Scope& scope = scopes_.back();
  if (stmt.uses_caller) {
    scope.emplace_back("caller", caller.missing() ? Undefined("caller") : caller);
  }
  if (stmt.uses_keywords) scope.emplace_back("kwargs", rest);
  if (stmt.uses_varargs) {
    std::vector<Value> extra;
    for (size_t i = count; i < args.positional.size(); ++i) extra.push_back(args.positional[i]);
    scope.emplace_back("varargs", MakeList(arena_, extra, Kind::kTuple));
  }
  for (size_t i = 0; i < count; ++i) {
    Value value = args.Get(i, stmt.parameters[i]);
    const size_t first_default = count - stmt.defaults.size();
    if (value.missing()) {
      value = i >= first_default ? Eval(*stmt.defaults[i - first_default])
                                 : Undefined(stmt.parameters[i]);
    }
    if (value.failed()) return false;
    scopes_.back().emplace_back(stmt.parameters[i], value);
  }
  return true;
}

Value Interpreter::CallMacro(const MacroObject& macro, const CallArgs& args) {
  if (depth_ >= limits_.depth_max) {
    return LimitReached("depth", absl::StrCat("nested deeper than ", limits_.depth_max));
  }
  // A caller sees the scopes of its call block, not those of the macro that calls it.
  std::vector<Scope> hidden;
  const size_t outer_frame = frame_;
  if (macro.is_caller) {
    if (scopes_.size() < macro.scope_count) {
      return Fail("NotImplementedError", "a caller kept after its call block is not supported");
    }
    hidden.assign(
        std::make_move_iterator(scopes_.begin() + static_cast<std::ptrdiff_t>(macro.scope_count)),
        std::make_move_iterator(scopes_.end()));
    scopes_.resize(macro.scope_count);
    frame_ = macro.frame;
  } else {
    frame_ = scopes_.size();
  }
  const size_t base = scopes_.size();
  scopes_.emplace_back();
  ++depth_;
  TextBuilder text;
  bool ok = BindParameters(*macro.stmt, args);
  if (ok) ok = RunBody(macro.stmt->body, text) == Flow::kNext;
  --depth_;
  scopes_.resize(base);
  for (Scope& scope : hidden) scopes_.push_back(std::move(scope));
  frame_ = outer_frame;
  return ok ? Finish(arena_, text) : Value::Error();
}

// loop(items) inside a recursive loop: the loop again, one deeper, in the scopes around it.
Value Interpreter::CallLoop(const LoopObject& loop, const CallArgs& args) {
  if (loop.recursive == nullptr) {
    return Fail("TypeError", "The loop must have the 'recursive' marker to be called recursively.");
  }
  const Value items = args.Get(0, "iterable");
  if (items.missing()) return Fail("TypeError", "loop() takes the items to go over");
  if (depth_ >= limits_.depth_max) {
    return LimitReached("depth", absl::StrCat("nested deeper than ", limits_.depth_max));
  }
  if (scopes_.size() < loop.scope_count) {
    return Fail("NotImplementedError", "a loop called after its end is not supported");
  }
  std::vector<Scope> hidden(
      std::make_move_iterator(scopes_.begin() + static_cast<std::ptrdiff_t>(loop.scope_count)),
      std::make_move_iterator(scopes_.end()));
  scopes_.resize(loop.scope_count);
  const size_t outer_frame = std::exchange(frame_, loop.frame);
  ++depth_;
  TextBuilder text;
  const Flow flow = RunLoop(*loop.recursive, items, loop.depth + 1, text);
  --depth_;
  frame_ = outer_frame;
  scopes_.resize(loop.scope_count);
  for (Scope& scope : hidden) scopes_.push_back(std::move(scope));
  return flow == Flow::kNext ? Finish(arena_, text) : Value::Error();
}

Interpreter::Flow Interpreter::RunWith(const Stmt& stmt, TextBuilder& out) {
  std::vector<Value> values;
  for (const Expr* e : stmt.exprs) {
    values.push_back(Eval(*e));
    if (values.back().failed()) return Flow::kStop;
  }
  scopes_.emplace_back();
  Flow flow = Flow::kNext;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!Assign(stmt.targets[i], values[i])) flow = Flow::kStop;
  }
  if (flow == Flow::kNext) flow = RunBody(stmt.body, out);
  scopes_.pop_back();
  return flow;
}

Interpreter::Flow Interpreter::RunCallBlock(const Stmt& stmt, TextBuilder& out) {
  if (stmt.generation) {
    TextBuilder text;
    scopes_.emplace_back();
    const Flow flow = RunBody(stmt.body, text);
    scopes_.pop_back();
    if (flow != Flow::kNext) return flow;
    const size_t begin = CountCodePoints(top_->text());
    generation_spans_.push_back({begin, begin + CountCodePoints(text.text())});
    return Print(Finish(arena_, text), out) ? Flow::kNext : Flow::kStop;
  }
  MacroObject* const caller = arena_.New<MacroObject>();
  caller->stmt = &stmt;
  caller->is_caller = true;
  caller->frame = frame_;
  caller->scope_count = scopes_.size();
  Value value = Value::Of(Kind::kMacro);
  value.macro = caller;
  const Value callee = Eval(*stmt.expr->a);
  CallArgs args;
  if (callee.failed() || !EvalArguments(*stmt.expr, args)) return Flow::kStop;
  args.keywords.emplace_back("caller", value);
  if (callee.undef()) {
    UndefinedUse(callee);
    return Flow::kStop;
  }
  if (callee.kind != Kind::kMacro) {
    Fail("NotImplementedError", "a call block of anything but a macro is not supported");
    return Flow::kStop;
  }
  const Value text = CallMacro(*callee.macro, args);
  return !text.failed() && Print(text, out) ? Flow::kNext : Flow::kStop;
}

Value Interpreter::ApplyChain(const Expr& filter, const Value& input) {
  const Value inner = filter.a == nullptr ? input : ApplyChain(*filter.a, input);
  return inner.failed() ? inner : ApplyFilter(filter, inner);
}

Interpreter::Flow Interpreter::RunFilterBlock(const Stmt& stmt, TextBuilder& out) {
  TextBuilder text;
  scopes_.emplace_back();
  Flow flow = RunBody(stmt.body, text);
  const Value value =
      flow == Flow::kNext ? ApplyChain(*stmt.expr, Finish(arena_, text)) : Value::Error();
  scopes_.pop_back();
  if (flow != Flow::kNext) return flow;
  return !value.failed() && Print(value, out) ? Flow::kNext : Flow::kStop;
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

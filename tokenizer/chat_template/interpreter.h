#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_INTERPRETER_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_INTERPRETER_H_

// Runs a syntax tree. One object a render.
//
// Variables stand in scopes by name: the module's, one for each loop body and each macro call. A
// macro sees its own scopes, then the module's, then the context. An error is kept once; values of
// kind kError unwind to the top.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "tokenizer/chat_template/ast.h"
#include "tokenizer/chat_template/chat_template.h"
#include "tokenizer/chat_template/value.h"

namespace tessera::tokenizer::jinja {

struct MacroObject {
  const Stmt* stmt = nullptr;
  // The body of a call block: it runs in the scopes that were there when the block began.
  bool is_caller = false;
  size_t frame = 0;
  size_t scope_count = 0;
};

struct NamespaceObject {
  DictObject* attributes = nullptr;
};

// `loop` inside a loop body.
struct LoopObject {
  const Value* items = nullptr;
  size_t count = 0;
  size_t index = 0;
  int depth = 1;
  // For loops marked recursive: what loop(items) runs, and in which scopes.
  const Stmt* recursive = nullptr;
  size_t frame = 0;
  size_t scope_count = 0;
  Value changed;  // what loop.changed saw last
};

// `text.split` before it is called.
struct MethodObject {
  Value owner;
  std::string_view name;
};

// A function that every template has.
struct BuiltinSpec {
  std::string_view name;
};

struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> keywords;

  // The argument at `index` or of this name; kMissing if it was not given.
  Value Get(size_t index, std::string_view name) const;
};

// Names that this interpreter knows; a template that uses others is refused when it is compiled.
bool KnowsFilter(std::string_view name);
bool KnowsTest(std::string_view name);
const BuiltinSpec* FindBuiltin(std::string_view name);

class Interpreter {
 public:
  Interpreter(const Tree& tree, const nlohmann::ordered_json& context, const RenderLimits& limits,
              const RenderClock& clock);

  // The text, or nothing after an error.
  bool Run(TextBuilder& out);
  const std::optional<TemplateError>& error() const { return error_; }
  const std::vector<GenerationSpan>& generation_spans() const { return generation_spans_; }

 private:
  using Scope = std::vector<std::pair<std::string_view, Value>>;
  enum class Flow : uint8_t { kNext, kBreak, kContinue, kStop };

  // Statements (execute.cc)
  Flow RunBody(const Body& body, TextBuilder& out);
  Flow RunStmt(const Stmt& stmt, TextBuilder& out);
  Flow RunIf(const Stmt& stmt, TextBuilder& out);
  Flow RunFor(const Stmt& stmt, TextBuilder& out);
  bool FilterItems(const Stmt& stmt, std::vector<Value>& items);
  bool Assign(const Target& target, const Value& value);
  Value CallMacro(const MacroObject& macro, const CallArgs& args);
  bool BindParameters(const Stmt& stmt, const CallArgs& args);
  Flow RunLoop(const Stmt& stmt, const Value& iterable, int depth, TextBuilder& out);
  Flow RunWith(const Stmt& stmt, TextBuilder& out);
  Flow RunCallBlock(const Stmt& stmt, TextBuilder& out);
  Flow RunFilterBlock(const Stmt& stmt, TextBuilder& out);
  Value CallLoop(const LoopObject& loop, const CallArgs& args);
  Value ApplyChain(const Expr& filter, const Value& input);
  bool Print(const Value& value, TextBuilder& out);

  // Expressions (evaluate.cc)
  Value Eval(const Expr& e);
  Value EvalInner(const Expr& e);
  Value EvalBinary(const Expr& e);
  Value EvalCompare(const Expr& e);
  Value EvalConcat(const Expr& e);
  Value EvalCall(const Expr& e);
  Value EvalDict(const Expr& e);
  Value EvalSequence(const Expr& e);
  Value EvalSlice(const Value& owner, const Expr& slice);
  bool EvalArguments(const Expr& e, CallArgs& args);
  Value Add(const Value& a, const Value& b);
  Value Arithmetic(Op op, const Value& a, const Value& b);
  std::optional<bool> Compare(Op op, const Value& a, const Value& b);
  std::optional<bool> Contains(const Value& container, const Value& item);
  Value Lookup(std::string_view name);
  Value Attribute(const Value& owner, std::string_view name);
  Value Item(const Value& owner, const Value& key);
  Value LoopAttribute(const LoopObject& loop, std::string_view name);

  // Filters, tests, methods, functions (builtins.cc)
  Value ApplyFilter(const Expr& e, const Value& input);
  Value ApplyTest(const Expr& e, const Value& input);
  Value RunFilter(std::string_view name, const Value& input, const CallArgs& args);
  Value RunTest(std::string_view name, const Value& input, const CallArgs& args);

  // Sequences and numbers (filters.cc)
  Value SequenceFilter(std::string_view name, const Value& input, const CallArgs& args);
  Value NumberFilter(std::string_view name, const Value& input, const CallArgs& args);
  Value AttributePath(const Value& item, const Value& path);
  Value SortKey(const Value& item, const Value& attribute, bool case_sensitive);
  bool Less(const Value& a, const Value& b, bool& less);
  bool SortPairs(std::vector<std::pair<Value, Value>>& items, bool reverse);
  Value Sorted(const Value& input, const Value& attribute, bool case_sensitive, bool reverse);
  Value DictSorted(const Value& input, const CallArgs& args);
  Value Selected(std::string_view name, const Value& input, const CallArgs& args);
  Value Mapped(const Value& input, const CallArgs& args);
  Value Grouped(const Value& input, const CallArgs& args);
  Value Batched(std::string_view name, const Value& input, const CallArgs& args);
  Value ToInt(const Value& input, const CallArgs& args);

  // Text (text_filters.cc)
  Value TextFilter(std::string_view name, const Value& input, const CallArgs& args);
  Value MoreTextMethod(std::string_view name, const Value& text, const CallArgs& args);
  Value SearchMethod(std::string_view name, const Value& text, const Value& wanted,
                     const CallArgs& args);
  Value SplitRight(const Value& text, const CallArgs& args);
  Value Changed(const Value& source, std::string_view text, bool markup);
  Value Escaped(const Value& value, bool again);
  Value SplitLines(const Value& text, bool keep_ends);
  Value Indented(const Value& text, const CallArgs& args);
  Value Truncated(const Value& text, const CallArgs& args);
  Value Padded(const Value& text, const CallArgs& args, int side, int64_t otherwise);
  static bool IsCase(std::string_view text, bool upper);

  Value CallMethod(const MethodObject& method, const CallArgs& args);
  Value CallTextMethod(const MethodObject& method, const CallArgs& args);
  Value CallDictMethod(const MethodObject& method, const CallArgs& args);
  Value CallBuiltin(const BuiltinSpec& builtin, const CallArgs& args);
  Value Join(const Value& input, const CallArgs& args);
  Value Split(const Value& text, const CallArgs& args);
  Value Strip(const Value& text, const CallArgs& args, bool left, bool right);
  Value Replace(const Value& text, const CallArgs& args);
  Value Range(const CallArgs& args);
  Value StrftimeNow(const CallArgs& args);

  // Printing (print.cc)
  void AppendText(const Value& value, TextBuilder& out);  // str()
  void AppendRepr(const Value& value, TextBuilder& out, int depth);
  bool AppendJson(const Value& value, TextBuilder& out, int indent, int level);
  Value ToJson(const Value& value, const CallArgs& args);
  Value Text(const Value& value);  // str() as a value

  // The items that a loop or a filter goes over. False after an error.
  bool Items(const Value& value, std::vector<Value>& items);
  Value FromJson(const nlohmann::ordered_json& json, int depth);
  Value Fail(std::string type, std::string message);
  Value Undefined(std::string_view name);
  Value UndefinedUse(const Value& value);  // the error of using it
  Value LimitReached(const char* limit, const std::string& message);
  // Counts work; false when a limit is reached.
  bool Step(int64_t steps = 1);
  static const char* TypeName(const Value& value);

  const Tree& tree_;
  const RenderLimits limits_;
  const RenderClock& clock_;
  Arena arena_;
  absl::Duration started_;
  int64_t steps_ = 0;
  int depth_ = 0;
  int line_ = 0;
  size_t output_bytes_ = 0;
  DictObject* context_ = nullptr;
  std::vector<Scope> scopes_;         // scopes_[0] is the module's
  size_t frame_ = 0;                  // first scope of the running macro; 0 at the top
  const TextBuilder* top_ = nullptr;  // what Run writes to
  std::vector<GenerationSpan> generation_spans_;
  std::optional<TemplateError> error_;
};

}  // namespace tessera::tokenizer::jinja

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_INTERPRETER_H_

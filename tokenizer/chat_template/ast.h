#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_AST_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_AST_H_

// The syntax tree of a template. Nodes live in the pools of Tree and point at each other freely.

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/chat_template/chat_template.h"
#include "tokenizer/chat_template/value.h"

namespace tessera::tokenizer::jinja {

enum class ExprKind : uint8_t {
  kConst,
  kData,  // template text, an item of an output statement
  kName,
  kTuple,
  kList,
  kDict,  // items: key, value, key, value, ...
  kGetattr,
  kGetitem,
  kSlice,  // a, b, c: start, stop, step, each may be null
  kCall,
  kFilter,
  kTest,
  kNot,
  kNeg,
  kPos,
  kAnd,
  kOr,
  kBinary,
  kConcat,
  kCompare,  // a, then items with compare_ops
  kCond,     // a if b else c
};

enum class Op : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,  // kBinary
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIn,
  kNotIn,  // kCompare
};

// A variable: a slot of the activation `hops` functions further out.
struct SlotRef {
  int hops = 0;
  int slot = -1;
};

struct FilterSpec;
struct TestSpec;

struct Expr {
  ExprKind kind = ExprKind::kConst;
  Op op = Op::kAdd;
  bool parameter = false;  // a name whose slot always has a value
  int line = 0;
  int column = 0;
  int depth = 1;
  std::string name;  // of a variable, attribute, filter or test
  Value constant;
  Expr* a = nullptr;
  Expr* b = nullptr;
  Expr* c = nullptr;
  std::vector<Expr*> items;  // elements, positional arguments, operands
  std::vector<Op> compare_ops;
  std::vector<std::pair<std::string, Expr*>> keywords;
  Expr* star_args = nullptr;
  Expr* star_keywords = nullptr;
  SlotRef slot;
  const FilterSpec* filter = nullptr;  // null: unknown, fails when it runs
  const TestSpec* test = nullptr;
};

// What happens to the slots of a frame when it is entered.
struct SlotLoad {
  enum class From : uint8_t { kUndefined, kContext, kAlias };
  int slot = 0;
  From from = From::kUndefined;
  int name_index = 0;  // kContext: into Tree::context_names
  SlotRef alias;
};

struct Frame {
  std::vector<SlotLoad> loads;
  std::vector<int> slots;  // all slots of the frame, set to missing when it is left
};

enum class StmtKind : uint8_t {
  kOutput,
  kSet,
  kSetBlock,
  kFor,
  kIf,
  kWith,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kScope,
  kBreak,
  kContinue,
  kBlock,
  kNeedsLoader,  // include, import, from, extends: fails when it runs
};

// An assignment target: a name, a namespace attribute or a tuple of targets.
struct Target {
  enum class Kind : uint8_t { kName, kAttribute, kTuple };
  Kind kind = Kind::kName;
  int line = 0;
  int column = 0;
  std::string name;
  std::string attribute;
  std::vector<Target> items;
  SlotRef slot;
  bool exported = false;  // a set at the top level: blocks see it
};

struct Stmt;
using Body = std::vector<Stmt*>;

// The code of a macro, of a caller or of a recursive loop: it has slots of its own.
struct Function {
  int slot_count = 0;
  int depth = 0;                    // functions around it
  std::vector<int> argument_slots;  // -1 for a caller slot that is absent
  int caller_slot = -1;
  int keywords_slot = -1;
  int varargs_slot = -1;
};

struct Stmt {
  StmtKind kind = StmtKind::kOutput;
  int line = 0;
  int column = 0;
  std::vector<Expr*> exprs;     // output: items; with: values
  std::vector<Target> targets;  // set, set block, for: one; with: one per value
  Expr* expr = nullptr;         // iterable, condition, call, filter chain
  Expr* condition = nullptr;    // for ... if
  bool recursive = false;
  bool generation = false;  // call block made by {% generation %}
  Body body;
  Body orelse;
  bool has_else = false;
  std::vector<Stmt*> elifs;
  std::string name;  // macro, block
  std::vector<std::string> parameters;
  std::vector<SlotRef> unused;
  std::vector<Expr*> defaults;  // of the last parameters
  bool scoped = false;
  bool required = false;
  // Filled by the resolver:
  Frame frame;  // body
  Frame else_frame;
  Frame test_frame;
  Target test_target;  // the loop target in the slots of the condition
  int loop_slot = -1;
  SlotRef slot;  // macro name
  bool exported = false;
  Function function;
};

struct Tree {
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  Arena constants{ChatTemplate::kSourceBytesMax * 64};
  Body body;
  Frame frame;
  Function root;
  int self_slot = -1;
  std::vector<std::string> context_names;
  std::vector<Stmt*> blocks;
  bool has_generation = false;
};

}  // namespace tessera::tokenizer::jinja

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_AST_H_

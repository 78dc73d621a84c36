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

struct Expr {
  ExprKind kind = ExprKind::kConst;
  Op op = Op::kAdd;
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
};

struct Stmt;
using Body = std::vector<Stmt*>;

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
  std::vector<Expr*> defaults;  // of the last parameters
  // Macros and call blocks: which of the names that a call fills in the body uses
  // (MarkSpecialNames).
  bool uses_caller = false;
  bool uses_keywords = false;
  bool uses_varargs = false;
};

struct Tree {
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  Arena constants{ChatTemplate::kSourceBytesMax * 64};
  Body body;
  std::vector<Stmt*> blocks;  // named blocks, so that none comes twice
};

}  // namespace tessera::tokenizer::jinja

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_AST_H_

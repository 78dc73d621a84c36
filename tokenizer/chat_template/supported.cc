#include "tokenizer/chat_template/supported.h"

#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/text_format.h"

namespace tessera::tokenizer::jinja {
namespace {

TemplateError Refuse(const std::string& what, int line, int column) {
  return {.type = "NotImplementedError",
          .message = absl::StrCat(what, " is not supported"),
          .line = line,
          .column = column};
}

std::optional<TemplateError> CheckExpr(const Expr& e) {
  if (e.star_args != nullptr || e.star_keywords != nullptr) {
    return Refuse("unpacking arguments with *", e.line, e.column);
  }
  if (e.kind == ExprKind::kFilter && !KnowsFilter(e.name)) {
    return Refuse(absl::StrCat("the filter ", ReprText(e.name)), e.line, e.column);
  }
  if (e.kind == ExprKind::kTest && !KnowsTest(e.name)) {
    return Refuse(absl::StrCat("the test ", ReprText(e.name)), e.line, e.column);
  }
  if (e.kind == ExprKind::kName) {
    for (const char* name : {"caller", "varargs", "kwargs", "cycler", "joiner", "lipsum", "self"}) {
      if (e.name == name)
        return Refuse(absl::StrCat("the name ", ReprText(e.name)), e.line, e.column);
    }
  }
  return std::nullopt;
}

std::optional<TemplateError> CheckStmt(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kWith:
      return Refuse("with", s.line, s.column);
    case StmtKind::kFilterBlock:
      return Refuse("a filter block", s.line, s.column);
    case StmtKind::kBlock:
      return Refuse("block", s.line, s.column);
    case StmtKind::kNeedsLoader:
      return Refuse("a tag that loads another template", s.line, s.column);
    case StmtKind::kCallBlock:
      return Refuse(s.generation ? "generation" : "a call block", s.line, s.column);
    case StmtKind::kSetBlock:
      if (s.expr != nullptr) return Refuse("a set block with a filter", s.line, s.column);
      return std::nullopt;
    case StmtKind::kFor:
      if (s.recursive) return Refuse("a recursive loop", s.line, s.column);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// Macros outside the module's own scope would need closures.
std::optional<TemplateError> CheckMacros(const Body& body, bool inside) {
  for (const Stmt* s : body) {
    if (s->kind == StmtKind::kMacro && inside) {
      return Refuse("a macro inside a loop, a block or a macro", s->line, s->column);
    }
    const bool deeper = inside || s->kind == StmtKind::kFor || s->kind == StmtKind::kMacro ||
                        s->kind == StmtKind::kSetBlock || s->kind == StmtKind::kCallBlock;
    if (auto error = CheckMacros(s->body, deeper)) return error;
    if (auto error = CheckMacros(s->orelse, inside)) return error;
    for (const Stmt* elif : s->elifs) {
      if (auto error = CheckMacros(elif->body, inside)) return error;
    }
  }
  return std::nullopt;
}

void AddTargets(const Target& target, std::set<std::string>& names) {
  if (target.kind == Target::Kind::kName) names.insert(target.name);
  for (const Target& item : target.items) AddTargets(item, names);
}

}  // namespace

std::optional<TemplateError> FindUnsupported(const Tree& tree) {
  for (const Expr& e : tree.exprs) {
    if (auto error = CheckExpr(e)) return error;
  }
  for (const Stmt& s : tree.stmts) {
    if (auto error = CheckStmt(s)) return error;
  }
  return CheckMacros(tree.body, false);
}

std::set<std::string> ContextNames(const Tree& tree) {
  std::set<std::string> read, own = {"loop"};
  for (const Expr& e : tree.exprs) {
    if (e.kind == ExprKind::kName && FindBuiltin(e.name) == nullptr) read.insert(e.name);
  }
  for (const Stmt& s : tree.stmts) {
    for (const Target& target : s.targets) {
      // A name that a template both reads from outside and sets ({% set tools = tools or [] %})
      // counts as read; those set by loops and macros' parameters do not come from outside.
      if (s.kind == StmtKind::kFor) AddTargets(target, own);
    }
    if (s.kind == StmtKind::kMacro) {
      own.insert(s.name);
      own.insert(s.parameters.begin(), s.parameters.end());
    }
  }
  for (const std::string& name : own) read.erase(name);
  return read;
}

}  // namespace tessera::tokenizer::jinja

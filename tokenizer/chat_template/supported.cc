#include "tokenizer/chat_template/supported.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/text_format.h"

namespace tessera::tokenizer::jinja {
namespace {

using Names = std::set<std::string>;

template <typename Visit>
void ForEachName(const Expr* e, const Visit& visit) {
  if (e == nullptr) return;
  if (e->kind == ExprKind::kName) visit(e->name);
  ForEachName(e->a, visit);
  ForEachName(e->b, visit);
  ForEachName(e->c, visit);
  for (const Expr* item : e->items) ForEachName(item, visit);
  for (const auto& [name, value] : e->keywords) ForEachName(value, visit);
  ForEachName(e->star_args, visit);
  ForEachName(e->star_keywords, visit);
}

template <typename Visit>
void ForEachTarget(const Target& t, const Visit& visit) {
  if (t.kind != Target::Kind::kTuple) return visit(t);
  for (const Target& item : t.items) ForEachTarget(item, visit);
}

// Which of `names` a body reads before it stores them, walking as Jinja walks.
class UndeclaredFinder {
 public:
  explicit UndeclaredFinder(Names names) : names_(std::move(names)) {}
  void Walk(const Body& body) {
    for (const Stmt* s : body) Walk(*s);
  }
  bool Found(const std::string& name) const { return found_.count(name) != 0; }

 private:
  void Load(const Expr* e) {
    ForEachName(e, [this](const std::string& name) {
      if (names_.count(name) != 0) found_.insert(name);
    });
  }
  void Store(const Target& target) {
    ForEachTarget(target, [this](const Target& t) {
      if (t.kind == Target::Kind::kName) names_.erase(t.name);
    });
  }
  void Parameters(const Stmt& s) {
    for (const std::string& name : s.parameters) names_.erase(name);
    for (const Expr* e : s.defaults) Load(e);
  }
  void Walk(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::kBlock:
        return;
      case StmtKind::kFor:
        Store(s.targets[0]);
        Load(s.expr);
        Walk(s.body);
        Walk(s.orelse);
        return Load(s.condition);
      case StmtKind::kIf:
        Load(s.expr);
        Walk(s.body);
        for (const Stmt* elif : s.elifs) Walk(*elif);
        return Walk(s.orelse);
      case StmtKind::kFilterBlock:
        Walk(s.body);
        return Load(s.expr);
      case StmtKind::kMacro:
        Parameters(s);
        return Walk(s.body);
      case StmtKind::kCallBlock:
        Load(s.expr);
        Parameters(s);
        return Walk(s.body);
      case StmtKind::kSet:
      case StmtKind::kNeedsLoader:
        for (const Target& t : s.targets) Store(t);
        return Load(s.expr);
      default:
        for (const Target& t : s.targets) Store(t);
        for (const Expr* e : s.exprs) Load(e);
        Load(s.expr);
        return Walk(s.body);
    }
  }

  Names names_;
  Names found_;
};

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
    for (const char* name : {"cycler", "joiner", "lipsum", "self"}) {
      if (e.name == name)
        return Refuse(absl::StrCat("the name ", ReprText(e.name)), e.line, e.column);
    }
  }
  return std::nullopt;
}

std::optional<TemplateError> CheckStmt(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kBlock:
      return Refuse("block", s.line, s.column);
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

void MarkSpecialNames(Tree& tree) {
  for (Stmt& s : tree.stmts) {
    if (s.kind != StmtKind::kMacro && s.kind != StmtKind::kCallBlock) continue;
    UndeclaredFinder finder({"caller", "kwargs", "varargs"});
    finder.Walk(s.body);
    const auto free = [&](const char* name) {
      const bool parameter =
          std::find(s.parameters.begin(), s.parameters.end(), name) != s.parameters.end();
      return finder.Found(name) && !parameter;
    };
    s.uses_caller = free("caller");
    s.uses_keywords = free("kwargs");
    s.uses_varargs = free("varargs");
  }
}

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
  std::set<std::string> read, own = {"loop", "caller", "kwargs", "varargs"};
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

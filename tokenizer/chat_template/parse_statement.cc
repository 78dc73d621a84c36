#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/parser_state.h"
#include "tokenizer/chat_template/text_format.h"

namespace tessera::tokenizer::jinja {
namespace {

bool Reserved(std::string_view name) {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" ||
         name == "None";
}

std::string_view NodeName(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kConst:
      return "const";
    case ExprKind::kList:
      return "list";
    case ExprKind::kDict:
      return "dict";
    case ExprKind::kTuple:
      return "tuple";
    default:
      return "expr";
  }
}

}  // namespace

std::optional<TemplateError> Parse(std::string_view source, Tree& tree) {
  Parser parser(Tokenize(source, tree.constants), tree);
  if (!parser.error()) parser.ParseTemplate();
  return parser.error();
}

void Parser::ParseTemplate() { ParseBody(tree_.body, nullptr); }

Stmt* Parser::NewStmt(StmtKind kind, const Token& where) {
  Stmt& s = tree_.stmts.emplace_back();
  s.kind = kind;
  s.line = where.line;
  s.column = where.column;
  return &s;
}

void Parser::ParseBody(Body& body, const EndTags* end_tags) {
  if (end_tags != nullptr) end_tags_.push_back(end_tags);
  Stmt* output = nullptr;
  const auto add = [&](Expr* e) {
    if (output == nullptr) {
      output = NewStmt(StmtKind::kOutput, current());
      body.push_back(output);
    }
    output->exprs.push_back(e);
  };
  while (!failed() && current().kind != TokenKind::kEnd) {
    const Token token = current();
    if (token.kind == TokenKind::kData) {
      Expr* e = New(ExprKind::kData, token);
      e->constant = Value::View(tree_.constants.Copy(token.text));
      add(e);
      Next();
    } else if (token.kind == TokenKind::kVariableBegin) {
      Next();
      Expr* e = ParseTuple(false, true, "", false);
      if (failed()) break;
      add(e);
      ExpectKind(TokenKind::kVariableEnd, "end of print statement");
    } else {
      output = nullptr;
      Next();
      if (failed()) break;
      const bool ends =
          end_tags != nullptr && current().kind == TokenKind::kName &&
          std::find(end_tags->begin(), end_tags->end(), current().text) != end_tags->end();
      if (ends) break;
      Stmt* s = ParseStatement();
      if (failed()) break;
      body.push_back(s);
      ExpectKind(TokenKind::kBlockEnd, "end of statement block");
    }
  }
  if (end_tags != nullptr) end_tags_.pop_back();
}

// From the end of the opening tag to one of the end tags, which stays current unless dropped.
void Parser::ParseBlock(Body& body, const EndTags& end_tags, bool drop_end) {
  Nest nest(*this);
  if (!nest.ok() || failed()) return;
  SkipOp(":");
  if (!ExpectKind(TokenKind::kBlockEnd, "end of statement block")) return;
  ParseBody(body, &end_tags);
  if (failed()) return;
  if (current().kind == TokenKind::kEnd) {
    end_tags_.push_back(&end_tags);
    FailUnclosed(nullptr, current());
    end_tags_.pop_back();
    return;
  }
  if (drop_end) Next();
}

void Parser::FailUnclosed(const std::string* tag, const Token& where) {
  std::string message = tag == nullptr
                            ? std::string("Unexpected end of template.")
                            : absl::StrCat("Encountered unknown tag ", ReprText(*tag), ".");
  if (!end_tags_.empty()) {
    std::string looking;
    for (const std::string_view end : *end_tags_.back()) {
      absl::StrAppend(&looking, looking.empty() ? "" : " or ", ReprText(end));
    }
    bool expected = false;
    for (const EndTags* tags : end_tags_) {
      for (const std::string_view end : *tags) expected |= tag != nullptr && end == *tag;
    }
    absl::StrAppend(&message,
                    expected ? " You probably made a nesting mistake. Jinja is expecting this tag, "
                               "but currently looking for "
                             : " Jinja was looking for the following tags: ",
                    looking, ".");
  }
  if (!open_tags_.empty()) {
    absl::StrAppend(&message, " The innermost block that needs to be closed is ",
                    ReprText(open_tags_.back()), ".");
  }
  Fail(std::move(message), where);
}

Stmt* Parser::ParseStatement() {
  const Token tag = current();
  if (tag.kind != TokenKind::kName) {
    Fail("tag name expected", tag);
    return nullptr;
  }
  open_tags_.push_back(tag.text);
  Stmt* s = Dispatch(tag);
  open_tags_.pop_back();
  return s;
}

Stmt* Parser::Dispatch(const Token& tag) {
  const std::string& name = tag.text;
  if (name == "for") return ParseFor();
  if (name == "if") return ParseIf();
  if (name == "set") return ParseSet();
  if (name == "macro") return ParseMacro();
  if (name == "call") return ParseCallBlock();
  if (name == "filter") return ParseFilterBlock();
  if (name == "with") return ParseWith();
  if (name == "print") return ParsePrint();
  if (name == "generation") return ParseGeneration();
  if (name == "break" || name == "continue") return ParseLoopControl();
  if (name == "block") return ParseNamedBlock();
  if (name == "autoescape") return ParseAutoescape();
  if (name == "include" || name == "import" || name == "from" || name == "extends") {
    return ParseLoaderTag();
  }
  const std::string unknown = open_tags_.back();
  open_tags_.pop_back();
  FailUnclosed(&unknown, tag);
  open_tags_.push_back(unknown);
  return nullptr;
}

bool Parser::TargetFrom(const Expr& e, Target& target) {
  target.line = e.line;
  target.column = e.column;
  if (e.kind == ExprKind::kName) {
    target.kind = Target::Kind::kName;
    target.name = e.name;
    return true;
  }
  if (e.kind == ExprKind::kTuple) {
    target.kind = Target::Kind::kTuple;
    for (const Expr* item : e.items) {
      if (!TargetFrom(*item, target.items.emplace_back())) return false;
    }
    return true;
  }
  return false;
}

bool Parser::ParseTarget(Target& target, bool name_only, bool with_namespace,
                         std::string_view end_name) {
  if (failed()) return false;
  const Token first = current();
  target.line = first.line;
  target.column = first.column;
  target.name = first.text;
  if (with_namespace && ahead().IsOp(".")) {
    if (!ExpectKind(TokenKind::kName, "name")) return false;
    Next();
    target.kind = Target::Kind::kAttribute;
    target.attribute = current().text;
    return ExpectKind(TokenKind::kName, "name");
  }
  if (name_only) {
    if (!ExpectKind(TokenKind::kName, "name")) return false;
    if (Reserved(first.text)) {
      Fail("can't assign to 'name'", first);
      return false;
    }
    return true;
  }
  const Expr* e = ParseTuple(true, true, end_name, false);
  if (failed()) return false;
  if (!TargetFrom(*e, target)) {
    FailAt(absl::StrCat("can't assign to ", ReprText(NodeName(*e))), e->line, e->column);
    return false;
  }
  return true;
}

Stmt* Parser::ParseSet() {
  Stmt* s = NewStmt(StmtKind::kSet, Next());
  if (!ParseTarget(s->targets.emplace_back(), false, true, "")) return nullptr;
  if (SkipOp("=")) {
    s->expr = ParseTuple(false, true, "", false);
    return s;
  }
  s->kind = StmtKind::kSetBlock;
  s->expr = ParseFilter(nullptr, false);
  static const EndTags kEnd = {"endset"};
  ParseBlock(s->body, kEnd, true);
  return s;
}

Stmt* Parser::ParseFor() {
  static const EndTags kEndOrElse = {"endfor", "else"};
  static const EndTags kEnd = {"endfor"};
  Stmt* s = NewStmt(StmtKind::kFor, Next());
  if (!ParseTarget(s->targets.emplace_back(), false, false, "in")) return nullptr;
  if (!ExpectName("in")) return nullptr;
  s->expr = ParseTuple(false, false, "recursive", false);
  if (failed()) return nullptr;
  if (SkipName("if")) s->condition = ParseExpression();
  if (failed()) return nullptr;
  s->recursive = SkipName("recursive");
  // A recursive loop is a function of its own, but the loop itself is inside it.
  ++loops_;
  ParseBlock(s->body, kEndOrElse, false);
  --loops_;
  if (failed()) return nullptr;
  const int outer_loops = loops_;
  if (s->recursive) loops_ = 0;
  if (Next().text == "else") {
    s->has_else = true;
    ParseBlock(s->orelse, kEnd, true);
  }
  loops_ = outer_loops;
  return s;
}

Stmt* Parser::ParseIf() {
  static const EndTags kEnds = {"elif", "else", "endif"};
  static const EndTags kEnd = {"endif"};
  Stmt* first = NewStmt(StmtKind::kIf, Next());
  Stmt* s = first;
  while (!failed()) {
    s->expr = ParseTuple(false, false, "", false);
    if (failed()) return nullptr;
    ParseBlock(s->body, kEnds, false);
    if (failed()) return nullptr;
    const Token token = Next();
    if (token.text == "elif") {
      s = NewStmt(StmtKind::kIf, token);
      first->elifs.push_back(s);
      continue;
    }
    if (token.text == "else") {
      first->has_else = true;
      ParseBlock(first->orelse, kEnd, true);
    }
    break;
  }
  return first;
}

Stmt* Parser::ParseWith() {
  static const EndTags kEnd = {"endwith"};
  Stmt* s = NewStmt(StmtKind::kWith, Next());
  while (!failed() && current().kind != TokenKind::kBlockEnd) {
    if (!s->targets.empty() && !ExpectOp(",")) return nullptr;
    if (!ParseTarget(s->targets.emplace_back(), false, false, "")) return nullptr;
    if (!ExpectOp("=")) return nullptr;
    s->exprs.push_back(ParseExpression());
  }
  ParseBlock(s->body, kEnd, true);
  return s;
}

void Parser::ParseSignature(Stmt& s) {
  if (!ExpectOp("(")) return;
  while (!failed() && !current().IsOp(")")) {
    if (!s.parameters.empty() && !ExpectOp(",")) return;
    const Token where = current();
    Target name;
    if (!ParseTarget(name, true, false, "")) return;
    if (std::find(s.parameters.begin(), s.parameters.end(), name.name) != s.parameters.end()) {
      return Fail(
          absl::StrCat("duplicate argument ", ReprText(name.name), " in function definition"),
          where, "SyntaxError");
    }
    if (SkipOp("=")) {
      s.defaults.push_back(ParseExpression());
    } else if (!s.defaults.empty()) {
      return Fail("non-default argument follows default argument", current());
    }
    s.parameters.push_back(name.name);
  }
  ExpectOp(")");
}

Stmt* Parser::ParseMacro() {
  static const EndTags kEnd = {"endmacro"};
  Stmt* s = NewStmt(StmtKind::kMacro, Next());
  Target name;
  if (!ParseTarget(name, true, false, "")) return nullptr;
  s->name = name.name;
  ParseSignature(*s);
  if (failed()) return nullptr;
  const int outer_loops = std::exchange(loops_, 0);
  ParseBlock(s->body, kEnd, true);
  loops_ = outer_loops;
  return s;
}

Stmt* Parser::ParseCallBlock() {
  static const EndTags kEnd = {"endcall"};
  Stmt* s = NewStmt(StmtKind::kCallBlock, Next());
  if (!failed() && current().IsOp("(")) ParseSignature(*s);
  s->expr = ParseExpression();
  if (failed()) return nullptr;
  if (s->expr->kind != ExprKind::kCall) {
    FailAt("expected call", s->line, s->column);
    return nullptr;
  }
  const int outer_loops = std::exchange(loops_, 0);
  ParseBlock(s->body, kEnd, true);
  loops_ = outer_loops;
  return s;
}

Stmt* Parser::ParseGeneration() {
  static const EndTags kEnd = {"endgeneration"};
  Stmt* s = NewStmt(StmtKind::kCallBlock, Next());
  s->generation = true;
  const int outer_loops = std::exchange(loops_, 0);
  ParseBlock(s->body, kEnd, true);
  loops_ = outer_loops;
  return s;
}

Stmt* Parser::ParseFilterBlock() {
  static const EndTags kEnd = {"endfilter"};
  Stmt* s = NewStmt(StmtKind::kFilterBlock, Next());
  s->expr = ParseFilter(nullptr, true);
  ParseBlock(s->body, kEnd, true);
  return s;
}

Stmt* Parser::ParsePrint() {
  Stmt* s = NewStmt(StmtKind::kOutput, Next());
  while (!failed() && current().kind != TokenKind::kBlockEnd) {
    if (!s->exprs.empty() && !ExpectOp(",")) return nullptr;
    s->exprs.push_back(ParseExpression());
  }
  return s;
}

Stmt* Parser::ParseLoopControl() {
  const Token tag = Next();
  if (loops_ == 0) {
    Fail(tag.text == "break" ? "'break' outside loop" : "'continue' not properly in loop", tag,
         "SyntaxError");
    return nullptr;
  }
  return NewStmt(tag.text == "break" ? StmtKind::kBreak : StmtKind::kContinue, tag);
}

Stmt* Parser::ParseNamedBlock() {
  static const EndTags kEnd = {"endblock"};
  Stmt* s = NewStmt(StmtKind::kBlock, Next());
  s->name = current().text;
  if (!ExpectKind(TokenKind::kName, "name")) return nullptr;
  SkipName("scoped");
  SkipName("required");
  if (current().IsOp("-")) {
    Fail(
        "Block names in Jinja have to be valid Python identifiers and may not contain hyphens, "
        "use an underscore instead.",
        current());
    return nullptr;
  }
  for (const Stmt* other : tree_.blocks) {
    if (other->name == s->name) {
      FailAt(absl::StrCat("block ", ReprText(s->name), " defined twice"), s->line, s->column,
             "TemplateAssertionError");
      return nullptr;
    }
  }
  tree_.blocks.push_back(s);
  const int outer_loops = std::exchange(loops_, 0);
  ParseBlock(s->body, kEnd, true);
  loops_ = outer_loops;
  SkipName(s->name);
  return s;
}

Stmt* Parser::ParseAutoescape() {
  static const EndTags kEnd = {"endautoescape"};
  Stmt* s = NewStmt(StmtKind::kScope, Next());
  const Expr* on = ParseExpression();
  if (failed()) return nullptr;
  if (on->kind != ExprKind::kConst || Truth(on->constant)) {
    FailAt("the tag 'autoescape' is not supported with anything but false", s->line, s->column);
    return nullptr;
  }
  ParseBlock(s->body, kEnd, true);
  return s;
}

// These need a loader, which chat templates do not have; Python fails only when they run.
Stmt* Parser::ParseLoaderTag() {
  const Token tag = Next();
  Stmt* s = NewStmt(StmtKind::kNeedsLoader, tag);
  s->name = tag.text;
  s->expr = ParseExpression();
  if (failed()) return nullptr;
  if (tag.text == "import") {
    if (!ExpectName("as") || !ParseTarget(s->targets.emplace_back(), true, false, "")) {
      return nullptr;
    }
  } else if (tag.text == "from") {
    if (!ExpectName("import")) return nullptr;
    do {
      if (!ParseTarget(s->targets.emplace_back(), true, false, "")) return nullptr;
      if (SkipName("as") && !ParseTarget(s->targets.back(), true, false, "")) return nullptr;
    } while (!failed() && SkipOp(","));
  } else if (tag.text == "include" && current().IsName("ignore") && ahead().IsName("missing")) {
    Next();
    Next();
  }
  if (tag.text != "extends" && (current().IsName("with") || current().IsName("without")) &&
      ahead().IsName("context")) {
    Next();
    Next();
  }
  return s;
}

}  // namespace tessera::tokenizer::jinja

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/parser_state.h"
#include "tokenizer/chat_template/text_format.h"

namespace tessera::tokenizer::jinja {

void Parser::CheckReadable() {
  if (current().kind == TokenKind::kError) Fail(current().text, current());
}

Token Parser::Next() {
  Token token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  CheckReadable();
  return token;
}

bool Parser::SkipName(std::string_view name) {
  if (!current().IsName(name)) return false;
  Next();
  return true;
}

bool Parser::SkipOp(std::string_view op) {
  if (!current().IsOp(op)) return false;
  Next();
  return true;
}

bool Parser::Expected(std::string_view description) {
  if (failed()) return false;
  if (current().kind == TokenKind::kEnd) {
    Fail(absl::StrCat("unexpected end of template, expected ", ReprText(description), "."),
         current());
  } else {
    Fail(absl::StrCat("expected token ", ReprText(description), ", got ",
                      ReprText(Describe(current()))),
         current());
  }
  return false;
}

bool Parser::ExpectKind(TokenKind kind, std::string_view description) {
  if (failed()) return false;
  if (current().kind != kind) return Expected(description);
  Next();
  return !failed();
}

bool Parser::ExpectName(std::string_view name) {
  if (failed()) return false;
  if (!current().IsName(name)) return Expected(name);
  Next();
  return !failed();
}

bool Parser::ExpectOp(std::string_view op) {
  if (failed()) return false;
  if (!current().IsOp(op)) return Expected(op);
  Next();
  return !failed();
}

void Parser::Fail(std::string message, const Token& where, std::string type) {
  FailAt(std::move(message), where.line, where.column, std::move(type));
}

void Parser::FailAt(std::string message, int line, int column, std::string type) {
  if (failed()) return;
  error_ = TemplateError{std::move(type), std::move(message), line, column, ""};
}

bool Parser::TooDeep() {
  if (!failed()) {
    Fail(absl::StrCat("the template is nested too deeply (limit ", kSyntaxDepthMax, ")"), current(),
         "LimitError");
    error_->limit = "depth";
  }
  return false;
}

Expr* Parser::New(ExprKind kind, const Token& where) {
  Expr& e = tree_.exprs.emplace_back();
  e.kind = kind;
  e.line = where.line;
  e.column = where.column;
  return &e;
}

// Long chains (a.b.c..., a + b + ...) make deep trees without any recursion here; whoever walks
// the tree later recurses, so the depth of every node is bounded.
Expr* Parser::Sealed(Expr* e) {
  int depth = 0;
  const auto count = [&depth](const Expr* child) {
    if (child != nullptr) depth = std::max(depth, child->depth);
  };
  count(e->a);
  count(e->b);
  count(e->c);
  count(e->star_args);
  count(e->star_keywords);
  for (const Expr* item : e->items) count(item);
  for (const auto& [name, value] : e->keywords) count(value);
  e->depth = depth + 1;
  if (e->depth > 2 * kSyntaxDepthMax) TooDeep();
  return failed() ? nullptr : e;
}

Expr* Parser::ParseExpression(bool with_condition) {
  Nest nest(*this);
  if (!nest.ok() || failed()) return nullptr;
  return with_condition ? ParseCondition() : ParseOr();
}

Expr* Parser::ParseCondition() {
  const Token where = current();
  Expr* left = ParseOr();
  while (!failed() && SkipName("if")) {
    Expr* e = New(ExprKind::kCond, where);
    e->a = left;
    e->b = ParseOr();
    if (!failed() && SkipName("else")) {
      Nest nest(*this);
      if (!nest.ok()) return nullptr;
      e->c = ParseCondition();
    }
    if (failed()) return nullptr;
    left = Sealed(e);
  }
  return failed() ? nullptr : left;
}

Expr* Parser::ParseOr() {
  const Token where = current();
  Expr* left = ParseAnd();
  while (!failed() && SkipName("or")) {
    Expr* e = New(ExprKind::kOr, where);
    e->a = left;
    e->b = ParseAnd();
    if (failed()) return nullptr;
    left = Sealed(e);
  }
  return failed() ? nullptr : left;
}

Expr* Parser::ParseAnd() {
  const Token where = current();
  Expr* left = ParseNot();
  while (!failed() && SkipName("and")) {
    Expr* e = New(ExprKind::kAnd, where);
    e->a = left;
    e->b = ParseNot();
    if (failed()) return nullptr;
    left = Sealed(e);
  }
  return failed() ? nullptr : left;
}

Expr* Parser::ParseNot() {
  if (failed()) return nullptr;
  if (!current().IsName("not")) return ParseCompare();
  Nest nest(*this);
  if (!nest.ok()) return nullptr;
  Expr* e = New(ExprKind::kNot, Next());
  e->a = ParseNot();
  return failed() ? nullptr : Sealed(e);
}

Expr* Parser::ParseCompare() {
  static constexpr std::pair<std::string_view, Op> kOps[] = {{"==", Op::kEq}, {"!=", Op::kNe},
                                                             {"<", Op::kLt},  {"<=", Op::kLe},
                                                             {">", Op::kGt},  {">=", Op::kGe}};
  const Token where = current();
  Expr* first = ParseSum();
  Expr* e = nullptr;
  while (!failed()) {
    Op op = Op::kAdd;
    for (const auto& [text, value] : kOps) {
      if (current().IsOp(text)) op = value;
    }
    if (op != Op::kAdd) {
      Next();
    } else if (SkipName("in")) {
      op = Op::kIn;
    } else if (current().IsName("not") && ahead().IsName("in")) {
      Next();
      Next();
      op = Op::kNotIn;
    } else {
      break;
    }
    if (e == nullptr) {
      e = New(ExprKind::kCompare, where);
      e->a = first;
    }
    e->compare_ops.push_back(op);
    e->items.push_back(ParseSum());
  }
  if (failed()) return nullptr;
  return e == nullptr ? first : Sealed(e);
}

Expr* Parser::ParseSum() {
  const Token where = current();
  Expr* left = ParseConcat();
  while (!failed() && (current().IsOp("+") || current().IsOp("-"))) {
    Expr* e = New(ExprKind::kBinary, where);
    e->op = Next().text == "+" ? Op::kAdd : Op::kSub;
    e->a = left;
    e->b = ParseConcat();
    if (failed()) return nullptr;
    left = Sealed(e);
  }
  return failed() ? nullptr : left;
}

Expr* Parser::ParseConcat() {
  const Token where = current();
  Expr* first = ParseProduct();
  if (failed() || !current().IsOp("~")) return first;
  Expr* e = New(ExprKind::kConcat, where);
  e->items.push_back(first);
  while (!failed() && SkipOp("~")) e->items.push_back(ParseProduct());
  return failed() ? nullptr : Sealed(e);
}

Expr* Parser::ParseProduct() {
  static constexpr std::pair<std::string_view, Op> kOps[] = {
      {"*", Op::kMul}, {"/", Op::kDiv}, {"//", Op::kFloorDiv}, {"%", Op::kMod}};
  const Token where = current();
  Expr* left = ParsePower();
  while (!failed()) {
    Op op = Op::kAdd;
    for (const auto& [text, value] : kOps) {
      if (current().IsOp(text)) op = value;
    }
    if (op == Op::kAdd) break;
    Next();
    Expr* e = New(ExprKind::kBinary, where);
    e->op = op;
    e->a = left;
    e->b = ParsePower();
    if (failed()) return nullptr;
    left = Sealed(e);
  }
  return failed() ? nullptr : left;
}

Expr* Parser::ParsePower() {
  const Token where = current();
  Expr* left = ParseUnary();
  while (!failed() && SkipOp("**")) {
    Expr* e = New(ExprKind::kBinary, where);
    e->op = Op::kPow;
    e->a = left;
    e->b = ParseUnary();
    if (failed()) return nullptr;
    left = Sealed(e);
  }
  return failed() ? nullptr : left;
}

Expr* Parser::ParseUnary(bool with_filter) {
  Nest nest(*this);
  if (!nest.ok() || failed()) return nullptr;
  Expr* e = nullptr;
  if (current().IsOp("-") || current().IsOp("+")) {
    const Token sign = Next();
    e = New(sign.text == "-" ? ExprKind::kNeg : ExprKind::kPos, sign);
    e->a = ParseUnary(false);
    e = failed() ? nullptr : Sealed(e);
  } else {
    e = ParsePrimary();
  }
  if (!failed()) e = ParsePostfix(e);
  if (!failed() && with_filter) e = ParseFilterChain(e);
  return failed() ? nullptr : e;
}

Expr* Parser::ParseStrings() {
  Expr* e = New(ExprKind::kConst, current());
  std::string text;
  while (!failed() && current().kind == TokenKind::kString) text += Next().text;
  e->constant = Value::View(tree_.constants.Copy(text));
  return e;
}

Expr* Parser::ParsePrimary() {
  if (failed()) return nullptr;
  const Token token = current();
  switch (token.kind) {
    case TokenKind::kName: {
      const std::string& name = token.text;
      const bool is_true = name == "true" || name == "True";
      const bool is_none = name == "none" || name == "None";
      const bool constant = is_true || is_none || name == "false" || name == "False";
      Expr* e = New(constant ? ExprKind::kConst : ExprKind::kName, token);
      e->name = name;
      if (constant) e->constant = is_none ? Value::None() : Value::Bool(is_true);
      Next();
      return e;
    }
    case TokenKind::kString:
      return ParseStrings();
    case TokenKind::kInteger:
    case TokenKind::kFloat: {
      Expr* e = New(ExprKind::kConst, token);
      e->constant = token.number;
      Next();
      return e;
    }
    case TokenKind::kOperator:
      if (token.text == "(") {
        Next();
        Expr* e = ParseTuple(false, true, "", true);
        ExpectOp(")");
        return e;
      }
      if (token.text == "[") return ParseListLiteral();
      if (token.text == "{") return ParseDictLiteral();
      break;
    default:
      break;
  }
  Fail(absl::StrCat("unexpected ", ReprText(Describe(token))), token);
  return nullptr;
}

bool Parser::AtTupleEnd(std::string_view end_name) const {
  const Token& t = current();
  return t.kind == TokenKind::kVariableEnd || t.kind == TokenKind::kBlockEnd || t.IsOp(")") ||
         (!end_name.empty() && t.IsName(end_name));
}

Expr* Parser::ParseTuple(bool simple, bool with_condition, std::string_view end_name,
                         bool in_parentheses) {
  Nest nest(*this);
  if (!nest.ok() || failed()) return nullptr;
  const Token where = current();
  std::vector<Expr*> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty() && !ExpectOp(",")) return nullptr;
    if (AtTupleEnd(end_name)) break;
    items.push_back(simple ? ParsePrimary() : ParseExpression(with_condition));
    if (failed()) return nullptr;
    if (!current().IsOp(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return items[0];
    if (!in_parentheses) {
      Fail(absl::StrCat("Expected an expression, got ", ReprText(Describe(current()))), current());
      return nullptr;
    }
  }
  Expr* e = New(ExprKind::kTuple, where);
  e->items = std::move(items);
  return Sealed(e);
}

Expr* Parser::ParseListLiteral() {
  Expr* e = New(ExprKind::kList, Next());
  while (!failed() && !current().IsOp("]")) {
    if (!e->items.empty() && !ExpectOp(",")) return nullptr;
    if (current().IsOp("]")) break;
    e->items.push_back(ParseExpression());
  }
  ExpectOp("]");
  return failed() ? nullptr : Sealed(e);
}

Expr* Parser::ParseDictLiteral() {
  Expr* e = New(ExprKind::kDict, Next());
  while (!failed() && !current().IsOp("}")) {
    if (!e->items.empty() && !ExpectOp(",")) return nullptr;
    if (current().IsOp("}")) break;
    e->items.push_back(ParseExpression());
    if (!ExpectOp(":")) return nullptr;
    e->items.push_back(ParseExpression());
  }
  ExpectOp("}");
  return failed() ? nullptr : Sealed(e);
}

Expr* Parser::ParsePostfix(Expr* e) {
  while (!failed()) {
    if (current().IsOp(".") || current().IsOp("[")) {
      e = ParseSubscript(e);
    } else if (current().IsOp("(")) {
      e = ParseCall(e);
    } else {
      break;
    }
  }
  return failed() ? nullptr : e;
}

Expr* Parser::ParseFilterChain(Expr* e) {
  while (!failed()) {
    if (current().IsOp("|")) {
      e = ParseFilter(e, false);
    } else if (current().IsName("is")) {
      e = ParseTest(e);
    } else if (current().IsOp("(")) {
      e = ParseCall(e);
    } else {
      break;
    }
  }
  return failed() ? nullptr : e;
}

Expr* Parser::ParseSubscript(Expr* object) {
  const Token token = Next();
  if (failed()) return nullptr;
  if (token.text == ".") {
    const Token name = Next();
    if (name.kind == TokenKind::kName) {
      Expr* e = New(ExprKind::kGetattr, token);
      e->a = object;
      e->name = name.text;
      return Sealed(e);
    }
    if (name.kind != TokenKind::kInteger) {
      Fail("expected name or number", name);
      return nullptr;
    }
    Expr* e = New(ExprKind::kGetitem, token);
    e->a = object;
    e->b = New(ExprKind::kConst, name);
    e->b->constant = name.number;
    return Sealed(e);
  }
  std::vector<Expr*> indices;
  while (!failed() && !current().IsOp("]")) {
    if (!indices.empty() && !ExpectOp(",")) return nullptr;
    indices.push_back(ParseIndex());
  }
  if (!ExpectOp("]")) return nullptr;
  Expr* e = New(ExprKind::kGetitem, token);
  e->a = object;
  if (indices.size() == 1) {
    e->b = indices[0];
  } else {
    e->b = New(ExprKind::kTuple, token);
    e->b->items = std::move(indices);
    if (Sealed(e->b) == nullptr) return nullptr;
  }
  return Sealed(e);
}

Expr* Parser::ParseIndex() {
  const Token where = current();
  Expr* start = nullptr;
  if (SkipOp(":")) {
    // no start
  } else {
    start = ParseExpression();
    if (failed()) return nullptr;
    if (!current().IsOp(":")) return start;
    Next();
  }
  const auto at_end = [this] { return current().IsOp("]") || current().IsOp(","); };
  Expr* e = New(ExprKind::kSlice, where);
  e->a = start;
  if (!failed() && !current().IsOp(":") && !at_end()) e->b = ParseExpression();
  if (!failed() && SkipOp(":") && !at_end()) e->c = ParseExpression();
  return failed() ? nullptr : Sealed(e);
}

bool Parser::ParseArguments(CallArguments& out) {
  const Token open = current();
  if (!ExpectOp("(")) return false;
  const auto ensure = [&](bool fine) {
    if (!fine) Fail("invalid syntax for function call expression", open);
    return fine;
  };
  bool need_comma = false;
  while (!failed() && !current().IsOp(")")) {
    if (need_comma) {
      if (!ExpectOp(",")) return false;
      if (current().IsOp(")")) break;
    }
    if (current().IsOp("*")) {
      if (!ensure(out.star_args == nullptr && out.star_keywords == nullptr)) return false;
      Next();
      out.star_args = ParseExpression();
    } else if (current().IsOp("**")) {
      if (!ensure(out.star_keywords == nullptr)) return false;
      Next();
      out.star_keywords = ParseExpression();
    } else if (current().kind == TokenKind::kName && ahead().IsOp("=")) {
      if (!ensure(out.star_keywords == nullptr)) return false;
      const Token key = Next();
      Next();
      for (const auto& [name, value] : out.keywords) {
        if (name == key.text) {
          Fail(absl::StrCat("keyword argument repeated: ", name), key, "SyntaxError");
          return false;
        }
      }
      out.keywords.emplace_back(key.text, ParseExpression());
    } else {
      if (!ensure(out.star_args == nullptr && out.star_keywords == nullptr &&
                  out.keywords.empty())) {
        return false;
      }
      out.positional.push_back(ParseExpression());
    }
    need_comma = true;
  }
  return ExpectOp(")");
}

void Parser::Attach(CallArguments& arguments, Expr& e) {
  e.items = std::move(arguments.positional);
  e.keywords = std::move(arguments.keywords);
  e.star_args = arguments.star_args;
  e.star_keywords = arguments.star_keywords;
}

Expr* Parser::ParseCall(Expr* function) {
  Expr* e = New(ExprKind::kCall, current());
  CallArguments arguments;
  if (!ParseArguments(arguments)) return nullptr;
  e->a = function;
  Attach(arguments, *e);
  return Sealed(e);
}

bool Parser::DottedName(std::string& name) {
  name = current().text;
  if (!ExpectKind(TokenKind::kName, "name")) return false;
  while (!failed() && SkipOp(".")) {
    name += "." + current().text;
    if (!ExpectKind(TokenKind::kName, "name")) return false;
  }
  return !failed();
}

Expr* Parser::ParseFilter(Expr* e, bool at_name) {
  while (!failed() && (at_name || current().IsOp("|"))) {
    if (!at_name) Next();
    at_name = false;
    if (failed()) return nullptr;
    Expr* filter = New(ExprKind::kFilter, current());
    if (!DottedName(filter->name)) return nullptr;
    if (current().IsOp("(")) {
      CallArguments arguments;
      if (!ParseArguments(arguments)) return nullptr;
      Attach(arguments, *filter);
    }
    filter->a = e;
    e = Sealed(filter);
  }
  return failed() ? nullptr : e;
}

Expr* Parser::ParseTest(Expr* value) {
  const Token where = Next();
  const bool negated = !failed() && SkipName("not");
  Expr* e = New(ExprKind::kTest, where);
  if (failed() || !DottedName(e->name)) return nullptr;
  e->a = value;
  const Token& next = current();
  if (next.IsOp("(")) {
    CallArguments arguments;
    if (!ParseArguments(arguments)) return nullptr;
    Attach(arguments, *e);
  } else if (((next.kind == TokenKind::kName && !next.IsName("else") && !next.IsName("or") &&
               !next.IsName("and")) ||
              next.kind == TokenKind::kString || next.kind == TokenKind::kInteger ||
              next.kind == TokenKind::kFloat || next.IsOp("[") || next.IsOp("{"))) {
    if (next.IsName("is")) {
      Fail("You cannot chain multiple tests with is", next);
      return nullptr;
    }
    Expr* argument = ParsePrimary();
    if (!failed()) argument = ParsePostfix(argument);
    if (failed()) return nullptr;
    e->items.push_back(argument);
  }
  if (Sealed(e) == nullptr) return nullptr;
  if (!negated) return e;
  Expr* negation = New(ExprKind::kNot, where);
  negation->a = e;
  return Sealed(negation);
}

}  // namespace tessera::tokenizer::jinja

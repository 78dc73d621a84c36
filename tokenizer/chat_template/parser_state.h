#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_PARSER_STATE_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_PARSER_STATE_H_

// The parser's inside, shared by its expression half and its statement half. Functions return
// null after an error, which is kept in error(); the first one stays.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/chat_template/ast.h"
#include "tokenizer/chat_template/lexer.h"
#include "tokenizer/chat_template/parser.h"

namespace tessera::tokenizer::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, Tree& tree) : tokens_(std::move(tokens)), tree_(tree) {
    CheckReadable();
  }
  void ParseTemplate();
  const std::optional<TemplateError>& error() const { return error_; }

 private:
  using EndTags = std::vector<std::string_view>;
  struct CallArguments {
    std::vector<Expr*> positional;
    std::vector<std::pair<std::string, Expr*>> keywords;
    Expr* star_args = nullptr;
    Expr* star_keywords = nullptr;
  };
  // Counts the nesting; false (and an error) beyond the limit.
  class Nest {
   public:
    explicit Nest(Parser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Nest() { --parser_.depth_; }
    bool ok() { return parser_.depth_ <= kSyntaxDepthMax || parser_.TooDeep(); }

   private:
    Parser& parser_;
  };

  bool failed() const { return error_.has_value(); }
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  void CheckReadable();
  Token Next();
  bool SkipName(std::string_view name);
  bool SkipOp(std::string_view op);
  bool ExpectKind(TokenKind kind, std::string_view description);
  bool ExpectName(std::string_view name);
  bool ExpectOp(std::string_view op);
  bool Expected(std::string_view description);
  void Fail(std::string message, const Token& where, std::string type = "TemplateSyntaxError");
  void FailAt(std::string message, int line, int column, std::string type = "TemplateSyntaxError");
  bool TooDeep();

  // Expressions
  Expr* New(ExprKind kind, const Token& where);
  Expr* Sealed(Expr* e);
  Expr* ParseExpression(bool with_condition = true);
  Expr* ParseCondition();
  Expr* ParseOr();
  Expr* ParseAnd();
  Expr* ParseNot();
  Expr* ParseCompare();
  Expr* ParseSum();
  Expr* ParseConcat();
  Expr* ParseProduct();
  Expr* ParsePower();
  Expr* ParseUnary(bool with_filter = true);
  Expr* ParsePrimary();
  Expr* ParseStrings();
  Expr* ParseTuple(bool simple, bool with_condition, std::string_view end_name,
                   bool in_parentheses);
  bool AtTupleEnd(std::string_view end_name) const;
  Expr* ParseListLiteral();
  Expr* ParseDictLiteral();
  Expr* ParsePostfix(Expr* e);
  Expr* ParseFilterChain(Expr* e);
  Expr* ParseSubscript(Expr* e);
  Expr* ParseIndex();
  Expr* ParseCall(Expr* e);
  bool ParseArguments(CallArguments& out);
  static void Attach(CallArguments& arguments, Expr& e);
  Expr* ParseFilter(Expr* e, bool at_name);
  Expr* ParseTest(Expr* e);
  bool DottedName(std::string& name);

  // Statements
  void ParseBody(Body& body, const EndTags* end_tags);
  void ParseBlock(Body& body, const EndTags& end_tags, bool drop_end);
  Stmt* NewStmt(StmtKind kind, const Token& where);
  Stmt* ParseStatement();
  Stmt* Dispatch(const Token& tag);
  Stmt* ParseSet();
  Stmt* ParseFor();
  Stmt* ParseIf();
  Stmt* ParseWith();
  Stmt* ParseMacro();
  Stmt* ParseCallBlock();
  Stmt* ParseFilterBlock();
  Stmt* ParsePrint();
  Stmt* ParseGeneration();
  Stmt* ParseNamedBlock();
  Stmt* ParseAutoescape();
  Stmt* ParseLoaderTag();
  Stmt* ParseLoopControl();
  void ParseSignature(Stmt& s);
  bool ParseTarget(Target& target, bool name_only, bool with_namespace, std::string_view end_name);
  bool TargetFrom(const Expr& e, Target& target);
  void FailUnclosed(const std::string* tag, const Token& where);

  const std::vector<Token> tokens_;
  Tree& tree_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<const EndTags*> end_tags_;
  std::vector<std::string> open_tags_;
  // Loops around the statement within the same function: break and continue need one.
  int loops_ = 0;
  std::optional<TemplateError> error_;
};

}  // namespace tessera::tokenizer::jinja

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_PARSER_STATE_H_

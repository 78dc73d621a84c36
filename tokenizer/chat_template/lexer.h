#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_LEXER_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/chat_template/value.h"

namespace tessera::tokenizer::jinja {

enum class TokenKind : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
  kError,  // what follows cannot be read; `text` is the message
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  int column = 1;
  std::string text;  // data, name, operator, decoded string
  Value number;

  bool Is(TokenKind k, std::string_view t) const { return kind == k && text == t; }
  bool IsName(std::string_view t) const { return Is(TokenKind::kName, t); }
  bool IsOp(std::string_view t) const { return Is(TokenKind::kOperator, t); }
};

// How Jinja names a token in its messages.
std::string Describe(const Token& token);

// Splits a template with trim_blocks and lstrip_blocks on. Big integers go into the arena. The
// last token is kEnd or kError. Cost: linear.
std::vector<Token> Tokenize(std::string_view source, Arena& arena);

}  // namespace tessera::tokenizer::jinja

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_LEXER_H_

#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_PARSER_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_PARSER_H_

#include <optional>
#include <string_view>

#include "tokenizer/chat_template/ast.h"
#include "tokenizer/chat_template/chat_template.h"

namespace tessera::tokenizer::jinja {

// Nesting of expressions and statements that the parser takes. Python gives up at a similar depth.
inline constexpr int kSyntaxDepthMax = 200;

// Reads the whole template into `tree`. The error, if there is one.
std::optional<TemplateError> Parse(std::string_view source, Tree& tree);

}  // namespace tessera::tokenizer::jinja

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_PARSER_H_

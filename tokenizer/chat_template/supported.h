#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_SUPPORTED_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_SUPPORTED_H_

#include <optional>
#include <set>
#include <string>

#include "tokenizer/chat_template/ast.h"
#include "tokenizer/chat_template/chat_template.h"

namespace tessera::tokenizer::jinja {

// The first thing in `tree` that the interpreter cannot do, with its place: it is refused when the
// template is compiled, and never rendered wrong. Python's own error for names that nobody knows.
std::optional<TemplateError> FindUnsupported(const Tree& tree);

// Notes for each macro whether it reads `caller`, `kwargs` and `varargs` (slots of 0, else -1).
void MarkSpecialNames(Tree& tree);

// Names that are read and that the template does not set itself, built-in functions left out.
std::set<std::string> ContextNames(const Tree& tree);

}  // namespace tessera::tokenizer::jinja

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_SUPPORTED_H_

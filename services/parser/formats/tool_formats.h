#ifndef TESSERA_SERVICES_PARSER_FORMATS_TOOL_FORMATS_H_
#define TESSERA_SERVICES_PARSER_FORMATS_TOOL_FORMATS_H_

// The tool-call formats by name. A new format is a ToolSyntax and a line in the table.

#include <memory>
#include <string_view>
#include <vector>

#include "services/parser/formats/tool_syntax.h"

namespace tessera::parser {

std::vector<std::string_view> ToolFormatTable();

// Null for "none" and for names that the table lacks.
std::unique_ptr<ToolSyntax> MakeToolSyntax(std::string_view name, const SyntaxContext& context);

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_TOOL_FORMATS_H_

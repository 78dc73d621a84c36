#ifndef TESSERA_SERVICES_PARSER_FORMATS_LLAMA3_JSON_H_
#define TESSERA_SERVICES_PARSER_FORMATS_LLAMA3_JSON_H_

// Llama 3 tool calls: {"name": NAME, "parameters": {…}} as the whole reply, bare or behind
// <|python_tag|>, several joined by ';' or ','. Bare JSON is a call only where the reply begins (or
// the last call ended), with arguments, and if its name is declared.

#include <cstdint>
#include <string_view>

#include "services/parser/formats/json_call.h"
#include "services/parser/formats/tool_syntax.h"

namespace tessera::parser {

class Llama3JsonSyntax final : public ToolSyntax {
 public:
  explicit Llama3JsonSyntax(const SyntaxContext& context) : context_(context), body_(context) {}

  std::string_view triggers() const override { return "<{;,"; }
  Probe ProbeText(const TextPlace& place) override;
  void Open() override { body_.Open(header_); }
  CallStep StepCall() override { return body_.Step(); }

 private:
  // Does a call begin with the next thing behind `inside`? If not, the answer is `otherwise`.
  Probe ProbeJson(uint64_t inside, bool declared_only, const Probe& otherwise);

  const SyntaxContext context_;
  JsonCallHeader header_;
  JsonCallBody body_;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_LLAMA3_JSON_H_

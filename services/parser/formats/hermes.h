#ifndef TESSERA_SERVICES_PARSER_FORMATS_HERMES_H_
#define TESSERA_SERVICES_PARSER_FORMATS_HERMES_H_

// Hermes and Qwen 2.5/3 tool calls: <tool_call>{"name": NAME, "arguments": {…}}</tool_call>.

#include <string_view>

#include "services/parser/formats/json_call.h"
#include "services/parser/formats/tool_syntax.h"

namespace tessera::parser {

class HermesSyntax final : public ToolSyntax {
 public:
  explicit HermesSyntax(const SyntaxContext& context) : context_(context), body_(context) {}

  std::string_view triggers() const override { return "<"; }
  Probe ProbeText(const TextPlace& place) override;
  void Open() override;
  CallStep StepCall() override { return body_.Step(); }

 private:
  const SyntaxContext context_;
  bool closer_due_ = false;  // the last call has not had its </tool_call>
  JsonCallHeader header_;
  JsonCallBody body_;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_HERMES_H_

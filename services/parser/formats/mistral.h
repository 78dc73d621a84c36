#ifndef TESSERA_SERVICES_PARSER_FORMATS_MISTRAL_H_
#define TESSERA_SERVICES_PARSER_FORMATS_MISTRAL_H_

// Mistral tool calls, all behind the token [TOOL_CALLS]: an array [{"name": NAME, "arguments":
// {…}}, …], or NAME{…}, or NAME[CALL_ID]ID[ARGS]{…}, the marker before each.

#include <cstdint>
#include <string>
#include <string_view>

#include "services/parser/formats/json_call.h"
#include "services/parser/formats/tool_syntax.h"

namespace tessera::parser {

class MistralSyntax final : public ToolSyntax {
 public:
  explicit MistralSyntax(const SyntaxContext& context) : context_(context), body_(context) {}

  std::string_view triggers() const override { return "[],"; }
  Probe ProbeText(const TextPlace& place) override;
  void Open() override;
  CallStep StepCall() override { return body_.Step(); }

 private:
  enum class Answer : uint8_t { kNo, kYes, kMore };
  Answer ReadMarked(uint64_t at);
  Answer ReadNamed(uint64_t at);
  Answer ReadJson(uint64_t at);

  const SyntaxContext context_;
  bool in_array_ = false;  // the array of calls has not closed
  bool open_array_ = false;
  bool open_named_ = false;
  std::string open_name_;
  uint64_t open_at_ = 0;  // kNamed: where the arguments begin
  JsonCallHeader header_;
  JsonCallBody body_;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_MISTRAL_H_

#ifndef TESSERA_SERVICES_GATEWAY_PARSE_ENDPOINTS_H_
#define TESSERA_SERVICES_GATEWAY_PARSE_ENDPOINTS_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/clients/parser_client.h"
#include "services/gateway/reply.h"
#include "services/gateway/reply_format.h"

namespace tessera::gateway {

// POST /parse/reasoning: {"text", "format"?, "enable_thinking"?} (text: the model's raw output,
// special tokens kept) is answered with {"content", "reasoning", "reasoning_content"}, null where
// there is none. `format` defaults to the served model's.
//
// Ownership: shares the reply; borrows the client. Errors: in the reply.
void AnswerParseReasoning(std::shared_ptr<Reply> reply, services::ParserClient& parser,
                          ReasoningField reasoning_field);

// POST /parse/function_call: {"text", "tools", "format"?} (text: the output after its reasoning) is
// answered with {"content", "tool_calls": [{"id", "type", "function": {"name", "arguments"}}]}.
void AnswerParseFunctionCall(std::shared_ptr<Reply> reply, services::ParserClient& parser);

// The bodies read. Errors: kInvalidArgument naming the field.
absl::StatusOr<parser::v1::ParseReasoningRequest> ReadParseReasoning(std::string_view body);
absl::StatusOr<parser::v1::ParseToolCallsRequest> ReadParseFunctionCall(std::string_view body);

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_PARSE_ENDPOINTS_H_

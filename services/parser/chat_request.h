#ifndef TESSERA_SERVICES_PARSER_CHAT_REQUEST_H_
#define TESSERA_SERVICES_PARSER_CHAT_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "services/parser/formats/output_parser.h"
#include "tessera/parser/v1/parser.pb.h"
#include "tessera/tokenizer/v1/tokenizer.pb.h"

namespace tessera::parser {

// What the parser knows about the model below, from the tokenizer's GetModelInfo.
struct ModelFacts {
  std::string reasoning_format = "none";
  std::string tool_format = "none";
  nlohmann::ordered_json default_kwargs = nlohmann::ordered_json::object();
};

// A chat request, checked and split in two: what the tokenizer is asked, and how its answer is
// read.
struct ChatPlan {
  tokenizer::v1::GenerateRequest generate;
  ParserOptions options;
  bool include_reasoning = true;
  bool logprobs = false;
  uint32_t choices = 1;
};

// Limits of one request.
inline constexpr uint32_t kChoicesMax = 16;
inline constexpr size_t kToolDefinitionBytesMax = size_t{1} << 20;

// Checks what this hop understands (tools, tool_choice, template variables, reasoning_effort); the
// rest is checked by the hops below. Pure.
//
// Template variables: the server's defaults, then reasoning_effort ("none" switches thinking off,
// "minimal" and "low" ask for low effort), then the request's own, key by key.
//
// Errors: kInvalidArgument naming the field in the words of ChatOptions ("tools[1].function.name").
absl::StatusOr<ChatPlan> PlanChat(const v1::ChatOptions& options, const ModelFacts& facts);

// Reads tools as clients send them ({"type":"function","function":{...}} or the function itself).
absl::StatusOr<std::vector<Tool>> ReadTools(
    const google::protobuf::RepeatedPtrField<tokenizer::v1::Tool>& tools);

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_CHAT_REQUEST_H_

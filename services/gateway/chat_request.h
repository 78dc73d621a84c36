#ifndef TESSERA_SERVICES_GATEWAY_CHAT_REQUEST_H_
#define TESSERA_SERVICES_GATEWAY_CHAT_REQUEST_H_

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "nlohmann/json.hpp"
#include "services/gateway/json_body.h"
#include "services/gateway/sampling_fields.h"
#include "tessera/parser/v1/parser.pb.h"

namespace tessera::gateway {

inline constexpr size_t kMessagesMax = 16'384;
inline constexpr size_t kContentPartsMax = 4'096;
inline constexpr size_t kToolCallsPerMessageMax = 1'024;
inline constexpr size_t kToolsMax = 1'024;
inline constexpr size_t kDocumentsMax = 1'024;

// An OpenAI chat request in the parser's words.
struct ChatCall {
  parser::v1::ChatOptions options;  // without request_id
  StreamOptions stream;
};

// Reads the body of POST /v1/chat/completions. Tools, template variables and documents go down as
// the client wrote them, byte for byte, since their key order and numbers change the prompt.
// Errors: kInvalidArgument naming the field in OpenAI's words ("messages[1].role").
absl::StatusOr<ChatCall> ReadChatRequest(std::string_view body);

// The `tools` of `root`, whose text is `body`.
void ReadTools(JsonFields& fields, std::string_view body,
               google::protobuf::RepeatedPtrField<tokenizer::v1::Tool>& tools);

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_CHAT_REQUEST_H_

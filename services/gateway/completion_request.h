#ifndef TESSERA_SERVICES_GATEWAY_COMPLETION_REQUEST_H_
#define TESSERA_SERVICES_GATEWAY_COMPLETION_REQUEST_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/gateway/sampling_fields.h"
#include "tessera/tokenizer/v1/tokenizer.pb.h"

namespace tessera::gateway {

inline constexpr size_t kCompletionPromptsMax = 64;
inline constexpr size_t kPromptTokensMax = 1 << 20;

// An OpenAI completion request: one generation a prompt.
struct CompletionCall {
  std::vector<tokenizer::v1::GenerateRequest> prompts;  // at least one; without request_id
  StreamOptions stream;
  uint32_t choices_per_prompt = 1;
};

// Reads the body of POST /v1/completions. `prompt` is a text, a list of texts, a list of token ids,
// or a list of such lists.
// Errors: kInvalidArgument naming the field ("prompt[1]").
absl::StatusOr<CompletionCall> ReadCompletionRequest(std::string_view body);

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_COMPLETION_REQUEST_H_

#ifndef TESSERA_SERVICES_GATEWAY_OPENAI_ERROR_H_
#define TESSERA_SERVICES_GATEWAY_OPENAI_ERROR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tessera::gateway {

// Which vocabulary a caller speaks: the prompt of a chat is `messages`, that of a completion is
// `prompt`.
enum class Vocabulary { kChat, kCompletion, kOther };

// A status of a layer below in the words of an OpenAI client: its field is renamed
// ("chat.messages[0].text" is `messages[0].content`, "sampling.top_p" is `top_p`, "prompt.ids[1]"
// is `prompt[1]`), in the message too. No field: unchanged, but for a prompt over the context,
// which is about `messages` or `prompt`.
absl::Status InClientWords(const absl::Status& status, Vocabulary vocabulary);

// The same for one prompt of a list: its fields are an element's ("prompt.ids[1]" is
// `prompt[INDEX][1]`). Apply it before InClientWords, which leaves the result as it is.
absl::Status InListedPrompt(const absl::Status& status, uint32_t index);

// {"error":{"message","type","param","code"}} and the HTTP status that goes with it.
struct OpenAiError {
  int http_status = 500;
  std::string body;
  std::optional<int> retry_after_s;  // with 429 and 503
};

// The error body of a status that is already in the client's words. `code` is the status's reason
// in lower case, or the usual OpenAI code.
OpenAiError ErrorFor(const absl::Status& status);

// The error body of something that HTTP itself refuses (404, 405, 413, 415, ...). `code` and the
// rest as OpenAI writes them.
OpenAiError HttpError(int http_status, std::string_view code, std::string_view message);

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_OPENAI_ERROR_H_

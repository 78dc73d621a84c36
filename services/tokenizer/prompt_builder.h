#ifndef TESSERA_SERVICES_TOKENIZER_PROMPT_BUILDER_H_
#define TESSERA_SERVICES_TOKENIZER_PROMPT_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "services/common/clock.h"
#include "services/tokenizer/text_model.h"
#include "tessera/tokenizer/v1/tokenizer.pb.h"
#include "tokenizer/chat_template/chat_template.h"
#include "tokenizer/detokenizer/stop_matcher.h"

namespace tessera::services {

// Text of one prompt: messages, tools and documents together, before rendering, and the rendered
// text after it.
inline constexpr size_t kPromptBytesMax = tessera::tokenizer::kTextBytesMax;
// JSON of one field (a tool, a document, arguments, template variables).
inline constexpr size_t kJsonFieldBytesMax = size_t{1} << 20;
inline constexpr size_t kJsonFieldDepthMax = 64;
// Keys of such JSON: ordered objects look keys up one by one.
inline constexpr size_t kJsonFieldKeysMax = 4096;

struct PromptOptions {
  // Under the request's chat_template_kwargs, key by key.
  nlohmann::ordered_json default_chat_template_kwargs = nlohmann::ordered_json::object();
  // Text that came from callers never becomes control tokens. Off: exactly the ids that Hugging
  // Face's library gives for the rendered text.
  bool protect_control_tokens = true;
};

struct Prompt {
  std::string text;
  std::vector<uint32_t> ids;
  // Template variables of the request that the template does not read.
  std::vector<std::string> ignored_kwargs;
  // A caller's text spelled a control token, and was kept text.
  bool control_tokens_protected = false;
};

// Turns conversations and texts into token ids. Immutable; any number of threads.
class PromptBuilder final {
 public:
  PromptBuilder(std::shared_ptr<const TextModel> model, PromptOptions options, const Clock& clock);

  // `context_tokens_max` of the engine, or 0 when it is not known yet: a text that is so long that
  // it cannot fit is refused before it is encoded.
  // Errors name fields as the message has them ("messages[2].role", "tools[0]").
  //   kInvalidArgument  a bad field, a template that refuses, or over kPromptBytesMax
  //   kOutOfRange       more tokens than the context has room for
  absl::StatusOr<Prompt> FromChat(const tokenizer::v1::ChatPrompt& chat,
                                  uint32_t context_tokens_max) const;
  // The same for a text, encoded with the post-processor. `field` names it.
  absl::StatusOr<Prompt> FromText(std::string_view text, std::string_view field,
                                  uint32_t context_tokens_max) const;

  const TextModel& model() const { return *model_; }
  const PromptOptions& options() const { return options_; }

 private:
  absl::Status Encode(const tessera::tokenizer::Rendered& rendered, Prompt& prompt) const;
  absl::Status CheckBytes(size_t bytes, std::string_view field, uint32_t context_tokens_max) const;

  const std::shared_ptr<const TextModel> model_;
  const PromptOptions options_;
  const Clock& clock_;
};

// Bytes of text in a chat prompt, before anything is done with it: how long the work will take.
size_t TextBytes(const tokenizer::v1::ChatPrompt& chat);

// Errors: kInvalidArgument naming `field`: not JSON, too long, too deep, too many keys.
absl::StatusOr<nlohmann::ordered_json> ParseJsonField(std::string_view text,
                                                      std::string_view field);

// Errors: kInvalidArgument "stop[3]": too many, or one of no or too many bytes.
absl::Status CheckStopStrings(const google::protobuf::RepeatedPtrField<std::string>& stop);

// Errors: kOutOfRange when so many prompt tokens leave no room for an answer.
absl::Status CheckPromptTokens(size_t tokens, std::string_view field, uint32_t context_tokens_max);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_TOKENIZER_PROMPT_BUILDER_H_

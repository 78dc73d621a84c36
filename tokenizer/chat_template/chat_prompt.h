#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_CHAT_PROMPT_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_CHAT_PROMPT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tokenizer/chat_template/chat_template.h"

namespace tessera::tokenizer {

// Every validation error of this header is kInvalidArgument, its message starts with the path of
// the field ("messages[2].role: ..."), and the path alone is the status payload of this name.
inline constexpr char kFieldPayloadUrl[] = "tessera.field";

inline constexpr size_t kChatMessagesMax = 100'000;
inline constexpr size_t kChatToolsMax = 10'000;

struct ChatContentPart {
  std::string type;  // only "text" is accepted
  std::string text;
};

struct ChatToolCall {
  std::string id;
  std::string name;
  // The JSON text that OpenAI clients send, or the decoded value. Null and blank text mean {}.
  std::variant<std::string, nlohmann::ordered_json> arguments;
};

struct ChatMessage {
  std::string role;
  // Nothing (JSON null), a text, or parts, which are joined with a newline.
  std::variant<std::monostate, std::string, std::vector<ChatContentPart>> content;
  std::optional<std::string> reasoning;  // handed to the template as reasoning_content
  std::vector<ChatToolCall> tool_calls;  // assistant only
  std::string tool_call_id;              // tool only; left out when empty
  std::string name;                      // left out when empty
};

struct ChatPromptRequest {
  std::vector<ChatMessage> messages;
  // As the client sent them, key order kept ({"type":"function","function":{...}}).
  std::vector<nlohmann::ordered_json> tools;
  std::vector<nlohmann::ordered_json> documents;
  // An object or null. Its keys become variables, and win over the server's own.
  nlohmann::ordered_json chat_template_kwargs;
  // An object or null of special tokens by name (bos_token, eos_token, ...), from the model.
  nlohmann::ordered_json special_tokens;
  bool add_generation_prompt = true;
  // The prompt ends with the text of the last message, which must be the assistant's.
  bool continue_final_message = false;
};

// The variables of the template. `tools` and `documents` are null when empty, as in transformers.
// Errors: the field errors above.
absl::StatusOr<nlohmann::ordered_json> BuildChatContext(const ChatPromptRequest& request);

// BuildChatContext, then Render, then the cut of continue_final_message.
// Errors: the field errors above, and those of ChatTemplate::Render.
absl::StatusOr<Rendered> RenderChat(const ChatTemplate& chat_template,
                                    const ChatPromptRequest& request, const RenderLimits& limits,
                                    const RenderClock& clock);

// Keys of chat_template_kwargs that the template does not read, in order: worth a line in the log.
std::vector<std::string> IgnoredKwargs(const ChatTemplate& chat_template,
                                       const ChatPromptRequest& request);

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_CHAT_PROMPT_H_

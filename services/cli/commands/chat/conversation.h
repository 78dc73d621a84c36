#ifndef TESSERA_SERVICES_CLI_COMMANDS_CHAT_CONVERSATION_H_
#define TESSERA_SERVICES_CLI_COMMANDS_CHAT_CONVERSATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tessera/parser/v1/parser.pb.h"
#include "tessera/tokenizer/v1/tokenizer.pb.h"

namespace tessera::cli {

// What every request of a conversation says besides its messages.
struct ChatSettings {
  bool thinking = true;
  bool low_effort = false;
  std::string system;  // empty: no system message
  std::vector<tokenizer::v1::Tool> tools;
  std::optional<uint32_t> max_tokens;
  std::optional<float> temperature;
  std::optional<uint64_t> seed;
};

// An OpenAI array of tools, each with its name, as the service takes it; keys keep their order.
// Errors: kInvalidArgument naming the entry.
absl::StatusOr<std::vector<tokenizer::v1::Tool>> ReadTools(std::string_view json);

// The messages so far. The history holds reasoning and calls as they came, since the model's own
// template decides what is shown of them again. Threading: one thread.
class Conversation final {
 public:
  explicit Conversation(ChatSettings settings);

  void AddUser(std::string text);
  void AddAnswer(const tokenizer::v1::Message& message);
  // The result of a call that the last answer made; in the order of its calls.
  void AddToolResult(const tokenizer::v1::ToolCall& call, std::string text);
  // Takes back the last question and all that came after it.
  void TakeBack();
  // Begins anew; the system message stays.
  void Reset();

  // Whether all of it is UTF-8, as the wire wants it. Errors: kInvalidArgument naming the place.
  absl::Status CheckText() const;
  parser::v1::ChatStreamRequest Request() const;

 private:
  const ChatSettings settings_;
  std::vector<tokenizer::v1::Message> messages_;
  size_t question_index_ = 0;  // where the last question stands, or the end if it is gone
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_CHAT_CONVERSATION_H_

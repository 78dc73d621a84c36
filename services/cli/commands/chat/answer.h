#ifndef TESSERA_SERVICES_CLI_COMMANDS_CHAT_ANSWER_H_
#define TESSERA_SERVICES_CLI_COMMANDS_CHAT_ANSWER_H_

#include "tessera/parser/v1/parser.pb.h"
#include "tessera/tokenizer/v1/tokenizer.pb.h"

namespace tessera::cli {

// One answer, gathered from its deltas, in the form in which it goes back into the conversation.
// Reasoning is kept: which of it the model sees again is for its chat template to say.
// Threading: one thread.
class Answer final {
 public:
  void Add(const parser::v1::ChatDelta& delta);

  // The assistant's message. Content is absent (null) if there was none.
  const tokenizer::v1::Message& message() const { return message_; }
  // FINISH_REASON_UNSPECIFIED until the last delta has come.
  parser::v1::FinishReason finish_reason() const { return finish_reason_; }

 private:
  tokenizer::v1::Message message_ = [] {
    tokenizer::v1::Message message;
    message.set_role("assistant");
    return message;
  }();
  parser::v1::FinishReason finish_reason_ = parser::v1::FINISH_REASON_UNSPECIFIED;
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_CHAT_ANSWER_H_

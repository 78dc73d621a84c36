#include "services/cli/commands/chat/answer.h"

namespace tessera::cli {

void Answer::Add(const parser::v1::ChatDelta& delta) {
  if (delta.has_reasoning()) message_.mutable_reasoning()->append(delta.reasoning());
  if (delta.has_content()) message_.mutable_text()->append(delta.content());
  for (const parser::v1::ToolCallDelta& piece : delta.tool_calls()) {
    // Calls come in order; a piece without a call before it would be the service's mistake.
    if (piece.has_name()) {
      tokenizer::v1::ToolCall& call = *message_.add_tool_calls();
      call.set_id(piece.id());
      call.set_name(piece.name());
    }
    if (message_.tool_calls_size() == 0) continue;
    tokenizer::v1::ToolCall& last = *message_.mutable_tool_calls()->rbegin();
    last.mutable_arguments_json()->append(piece.arguments_fragment());
  }
  if (delta.has_end()) finish_reason_ = delta.end().finish_reason();
}

}  // namespace tessera::cli

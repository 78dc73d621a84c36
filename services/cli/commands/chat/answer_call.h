#ifndef TESSERA_SERVICES_CLI_COMMANDS_CHAT_ANSWER_CALL_H_
#define TESSERA_SERVICES_CLI_COMMANDS_CHAT_ANSWER_CALL_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "services/clients/parser_client.h"
#include "tessera/parser/v1/parser.pb.h"

namespace tessera::cli {

// Events that wait to be shown, at most; then the service is held up until some have been.
inline constexpr size_t kEventsWaitingMax = 256;

// Asks for one answer and hands its events to `on_event` on the calling thread, which may be slow,
// until the stream has ended. As soon as `interrupt_fd` can be read (-1: never) the call is
// cancelled, and no event follows; the descriptor is not read here.
// Errors: kCancelled after an interrupt, kInternal if the stream ended early, kAborted if the
// service was lost after something had come, else the status of the call as it is.
absl::Status RunAnswerCall(
    services::ParserClient& parser, parser::v1::ChatStreamRequest request, int interrupt_fd,
    absl::FunctionRef<void(const parser::v1::ChatStreamResponse& event)> on_event);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_CHAT_ANSWER_CALL_H_

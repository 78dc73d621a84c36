#ifndef TESSERA_SERVICES_GATEWAY_CHAT_ENDPOINT_H_
#define TESSERA_SERVICES_GATEWAY_CHAT_ENDPOINT_H_

#include <memory>

#include "services/clients/parser_client.h"
#include "services/gateway/reply.h"
#include "services/gateway/reply_format.h"

namespace tessera::gateway {

// POST /v1/chat/completions: reads the body, makes one call to the parser, answers as its events
// come. Returns at once; the answer comes on gRPC's threads. A client that goes away cancels the
// call, one that is behind pauses it. Nothing is sent before the first output, so that a failure
// until then still has its HTTP status.
//
// Ownership: shares the reply; borrows the client. Errors: in the reply.
void AnswerChat(std::shared_ptr<Reply> reply, services::ParserClient& parser,
                ReasoningField reasoning_field);

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_CHAT_ENDPOINT_H_

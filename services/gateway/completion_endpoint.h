#ifndef TESSERA_SERVICES_GATEWAY_COMPLETION_ENDPOINT_H_
#define TESSERA_SERVICES_GATEWAY_COMPLETION_ENDPOINT_H_

#include <memory>

#include "services/clients/parser_client.h"
#include "services/gateway/reply.h"

namespace tessera::gateway {

// POST /v1/completions: as AnswerChat, with one call below for each prompt of the request, all at
// once. The first that fails cancels the others.
void AnswerCompletion(std::shared_ptr<Reply> reply, services::ParserClient& parser);

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_COMPLETION_ENDPOINT_H_

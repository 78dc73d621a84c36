#ifndef TESSERA_SERVICES_CLIENTS_PARSER_CLIENT_H_
#define TESSERA_SERVICES_CLIENTS_PARSER_CLIENT_H_

#include <memory>

#include "grpcpp/channel.h"
#include "services/clients/health_watch.h"
#include "services/common/call_context.h"
#include "services/common/stream/client_call.h"
#include "tessera/parser/v1/parser.pb.h"

namespace tessera::services {

// The parser, as the gateway sees it. Calls never block; answers come on gRPC's threads.
// Threading: any thread.
class ParserClient {
 public:
  virtual ~ParserClient() = default;
  virtual std::shared_ptr<ClientCall> Chat(const CallContext& context,
                                           parser::v1::ChatRequest request,
                                           UnaryDone<parser::v1::ChatResponse> done) = 0;
  virtual std::shared_ptr<ClientCall> ChatStream(
      const CallContext& context, parser::v1::ChatStreamRequest request,
      ClientStreamEvents<parser::v1::ChatStreamResponse> events) = 0;
  virtual std::shared_ptr<ClientCall> CompleteStream(
      const CallContext& context, parser::v1::CompleteStreamRequest request,
      ClientStreamEvents<parser::v1::CompleteStreamResponse> events) = 0;
  virtual std::shared_ptr<ClientCall> ParseReasoning(
      const CallContext& context, parser::v1::ParseReasoningRequest request,
      UnaryDone<parser::v1::ParseReasoningResponse> done) = 0;
  virtual std::shared_ptr<ClientCall> ParseToolCalls(
      const CallContext& context, parser::v1::ParseToolCallsRequest request,
      UnaryDone<parser::v1::ParseToolCallsResponse> done) = 0;
  virtual std::shared_ptr<ClientCall> GetModelInfo(
      const CallContext& context, UnaryDone<parser::v1::GetModelInfoResponse> done) = 0;
  // Health of tessera.parser.v1.ParserService.
  virtual std::unique_ptr<HealthWatch> Watch(HealthChanged changed) = 0;
};

std::unique_ptr<ParserClient> MakeParserClient(std::shared_ptr<grpc::Channel> channel);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_CLIENTS_PARSER_CLIENT_H_

#ifndef TESSERA_SERVICES_CLIENTS_TOKENIZER_CLIENT_H_
#define TESSERA_SERVICES_CLIENTS_TOKENIZER_CLIENT_H_

#include <memory>

#include "grpcpp/channel.h"
#include "services/clients/health_watch.h"
#include "services/common/call_context.h"
#include "services/common/stream/client_call.h"
#include "tessera/tokenizer/v1/tokenizer.pb.h"

namespace tessera::services {

// The tokenizer, as the parser sees it. Calls never block; answers come on gRPC's threads.
// Threading: any thread.
class TokenizerClient {
 public:
  using GenerateEvents = ClientStreamEvents<tokenizer::v1::GenerateResponse>;

  virtual ~TokenizerClient() = default;
  virtual std::shared_ptr<ClientCall> Generate(const CallContext& context,
                                               tokenizer::v1::GenerateRequest request,
                                               GenerateEvents events) = 0;
  virtual std::shared_ptr<ClientCall> Tokenize(const CallContext& context,
                                               tokenizer::v1::TokenizeRequest request,
                                               UnaryDone<tokenizer::v1::TokenizeResponse> done) = 0;
  virtual std::shared_ptr<ClientCall> Detokenize(
      const CallContext& context, tokenizer::v1::DetokenizeRequest request,
      UnaryDone<tokenizer::v1::DetokenizeResponse> done) = 0;
  virtual std::shared_ptr<ClientCall> RenderChat(
      const CallContext& context, tokenizer::v1::RenderChatRequest request,
      UnaryDone<tokenizer::v1::RenderChatResponse> done) = 0;
  virtual std::shared_ptr<ClientCall> GetTokenizer(
      const CallContext& context,
      ClientStreamEvents<tokenizer::v1::GetTokenizerResponse> events) = 0;
  virtual std::shared_ptr<ClientCall> GetModelInfo(
      const CallContext& context, UnaryDone<tokenizer::v1::GetModelInfoResponse> done) = 0;
  // Health of tessera.tokenizer.v1.TokenizerService.
  virtual std::unique_ptr<HealthWatch> Watch(HealthChanged changed) = 0;
};

std::unique_ptr<TokenizerClient> MakeTokenizerClient(std::shared_ptr<grpc::Channel> channel);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_CLIENTS_TOKENIZER_CLIENT_H_

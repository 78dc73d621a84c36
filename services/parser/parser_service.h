#ifndef TESSERA_SERVICES_PARSER_PARSER_SERVICE_H_
#define TESSERA_SERVICES_PARSER_PARSER_SERVICE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "services/clients/tokenizer_client.h"
#include "services/common/clock.h"
#include "services/common/log.h"
#include "services/common/request_id.h"
#include "services/parser/chat_request.h"
#include "services/parser/chat_session.h"
#include "services/parser/parser_metrics.h"
#include "tessera/parser/v1/parser.grpc.pb.h"

namespace tessera::parser {

inline constexpr char kServiceName[] = "tessera.parser.v1.ParserService";
// Text that ParseReasoning and ParseToolCalls take.
inline constexpr size_t kParseTextBytesMax = size_t{16} << 20;

struct FormatFlags {
  std::string reasoning_format = "auto";  // "auto": as the model's template suggests
  std::string tool_format = "auto";
};

// tessera.parser.v1.ParserService over the tokenizer's client. It serves as soon as the tokenizer
// does: it follows the tokenizer's health, asks it for the model's facts each time it comes (back),
// and tells `serving_changed`.
//
// Ownership: borrows everything given; all of it must outlive the last call. Threading: gRPC's.
class ParserService final : public v1::ParserService::CallbackService {
 public:
  ParserService(FormatFlags flags, services::TokenizerClient& tokenizer,
                const services::Logger& log, services::RequestIds& ids,
                const services::Clock& clock, ParserMetrics& metrics,
                std::function<void(bool serving)> serving_changed);
  ~ParserService() override;

  grpc::ServerUnaryReactor* Chat(grpc::CallbackServerContext* context,
                                 const v1::ChatRequest* request,
                                 v1::ChatResponse* response) override;
  grpc::ServerWriteReactor<v1::ChatStreamResponse>* ChatStream(
      grpc::CallbackServerContext* context, const v1::ChatStreamRequest* request) override;
  grpc::ServerWriteReactor<v1::CompleteStreamResponse>* CompleteStream(
      grpc::CallbackServerContext* context, const v1::CompleteStreamRequest* request) override;
  grpc::ServerUnaryReactor* ParseReasoning(grpc::CallbackServerContext* context,
                                           const v1::ParseReasoningRequest* request,
                                           v1::ParseReasoningResponse* response) override;
  grpc::ServerUnaryReactor* ParseToolCalls(grpc::CallbackServerContext* context,
                                           const v1::ParseToolCallsRequest* request,
                                           v1::ParseToolCallsResponse* response) override;
  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const v1::GetModelInfoRequest* request,
                                         v1::GetModelInfoResponse* response) override;

 private:
  void OnTokenizerHealth(bool serving);
  void TakeModelInfo(const tokenizer::v1::GetModelInfoResponse& info);
  // kUnavailable until the tokenizer has told.
  absl::StatusOr<ModelFacts> Facts() const;
  // A chat request checked, ready to be asked below.
  struct Prepared {
    std::unique_ptr<ChatSession> session;
    tokenizer::v1::GenerateRequest generate;
  };
  absl::StatusOr<Prepared> Prepare(const v1::ChatOptions& options, ChatSession::Form form,
                                   const std::string& request_id);
  // What ParseReasoning and ParseToolCalls do: `text` whole, its fallbacks counted.
  absl::StatusOr<ParsedMessage> ParseText(const std::string& text, ParserOptions options);
  grpc::ServerUnaryReactor* ReplyTo(grpc::CallbackServerContext* context, std::string_view method,
                                    absl::Duration began, const absl::Status& status);

  const FormatFlags flags_;
  services::TokenizerClient& tokenizer_;
  const services::Logger& log_;
  services::RequestIds& ids_;
  const services::Clock& clock_;
  ParserMetrics& metrics_;
  const std::function<void(bool)> serving_changed_;
  mutable absl::Mutex mutex_;
  std::optional<ModelFacts> facts_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<services::HealthWatch> watch_;  // last: its callbacks use the members above
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_PARSER_SERVICE_H_

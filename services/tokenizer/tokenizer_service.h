#ifndef TESSERA_SERVICES_TOKENIZER_TOKENIZER_SERVICE_H_
#define TESSERA_SERVICES_TOKENIZER_TOKENIZER_SERVICE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "services/clients/engine_client.h"
#include "services/common/call_context.h"
#include "services/common/clock.h"
#include "services/common/log.h"
#include "services/common/request_id.h"
#include "services/common/work_pool.h"
#include "services/tokenizer/engine_watcher.h"
#include "services/tokenizer/generate_call.h"
#include "services/tokenizer/prompt_builder.h"
#include "services/tokenizer/text_model.h"
#include "services/tokenizer/tokenizer_metrics.h"
#include "tessera/tokenizer/v1/tokenizer.grpc.pb.h"

namespace tessera::services {

inline constexpr char kTokenizerServiceName[] = "tessera.tokenizer.v1.TokenizerService";

// Limits of one call.
inline constexpr size_t kTokenizeTextsMax = 1024;
inline constexpr size_t kDetokenizeSequencesMax = 1024;
inline constexpr size_t kDetokenizeTokensMax = size_t{1} << 20;
inline constexpr size_t kFilePieceBytes = size_t{1} << 20;
// Long prompts that may wait for a thread.
inline constexpr size_t kWorkTasksMax = 256;

// The TokenizerService: checks a request, does its work on the calling thread or on the pool, and
// relays Generate streams. Answers kUnavailable until it has a model.
// Ownership: borrows what Parts names; must outlive the server.
// Threading: any thread.
class TokenizerService final : public tokenizer::v1::TokenizerService::CallbackService {
 public:
  struct Parts {
    EngineClient& engine;
    const Logger& log;
    const Clock& clock;
    RequestIds& request_ids;
    prometheus::Registry& registry;
    size_t pool_threads = 2;
    // Whether the service can serve: it has a model and the engine serves. At each change.
    std::function<void(bool serving)> on_serving;
  };

  explicit TokenizerService(Parts parts);
  ~TokenizerService() override;

  // Once.
  void SetModel(std::shared_ptr<const TextModel> model, PromptOptions options);
  TokenizerMetrics& metrics() { return metrics_; }

  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const tokenizer::v1::TokenizeRequest* request,
                                     tokenizer::v1::TokenizeResponse* response) override;
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const tokenizer::v1::DetokenizeRequest* request,
                                       tokenizer::v1::DetokenizeResponse* response) override;
  grpc::ServerUnaryReactor* RenderChat(grpc::CallbackServerContext* context,
                                       const tokenizer::v1::RenderChatRequest* request,
                                       tokenizer::v1::RenderChatResponse* response) override;
  grpc::ServerWriteReactor<tokenizer::v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const tokenizer::v1::GenerateRequest* request) override;
  grpc::ServerWriteReactor<tokenizer::v1::GetTokenizerResponse>* GetTokenizer(
      grpc::CallbackServerContext* context,
      const tokenizer::v1::GetTokenizerRequest* request) override;
  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const tokenizer::v1::GetModelInfoRequest* request,
                                         tokenizer::v1::GetModelInfoResponse* response) override;

 private:
  using Work = std::function<absl::Status(const PromptBuilder&)>;

  // Null before SetModel.
  std::shared_ptr<const PromptBuilder> prompts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs `work`, on the pool if `bytes` is much, and answers with its status.
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const char* method,
                                   size_t bytes, Work work);
  void Ended(const char* method, const CallContext& context, const absl::Status& status,
             absl::Duration arrived);
  void TellServing() ABSL_LOCKS_EXCLUDED(mutex_);

  const Parts parts_;
  TokenizerMetrics metrics_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const PromptBuilder> prompts_ ABSL_GUARDED_BY(mutex_);
  bool engine_serving_ ABSL_GUARDED_BY(mutex_) = false;
  WorkPool pool_;
  EngineWatcher watcher_;
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_TOKENIZER_TOKENIZER_SERVICE_H_

#ifndef TESSERA_SERVICES_TOKENIZER_GENERATE_CALL_H_
#define TESSERA_SERVICES_TOKENIZER_GENERATE_CALL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/clients/engine_client.h"
#include "services/common/call_context.h"
#include "services/common/clock.h"
#include "services/common/log.h"
#include "services/common/stream/client_call.h"
#include "services/common/stream/server_stream.h"
#include "services/common/work_pool.h"
#include "services/tokenizer/choice_decoder.h"
#include "services/tokenizer/engine_watcher.h"
#include "services/tokenizer/prompt_builder.h"
#include "services/tokenizer/tokenizer_metrics.h"
#include "tessera/tokenizer/v1/tokenizer.pb.h"

namespace tessera::services {

// A prompt with more text than this is built on the pool instead of on gRPC's thread: some 2 ms.
inline constexpr size_t kInlineBytesMax = size_t{16} << 10;

// What a call needs of its service; outlives all calls.
struct GenerateParts {
  EngineClient& engine;
  const EngineWatcher& watcher;
  WorkPool& pool;
  TokenizerMetrics& metrics;
  const Logger& log;
  const Clock& clock;
};

// One Generate call: prompt in, engine stream below, text stream above. Holds no queue of its own:
// what the reader above does not take stays in the two streams, which pause the engine.
//
// Life: kept alive by its two streams' events. States: building the prompt, relaying, ended.
// Threading: the prompt is built by one thread; after it, engine events come one at a time.
class GenerateCall final : public std::enable_shared_from_this<GenerateCall> {
 public:
  using Response = tokenizer::v1::GenerateResponse;
  using Stream = ServerStream<Response>;

  static grpc::ServerWriteReactor<Response>* Start(grpc::CallbackServerContext* context,
                                                   const tokenizer::v1::GenerateRequest& request,
                                                   CallContext call_context,
                                                   std::shared_ptr<const PromptBuilder> prompts,
                                                   const GenerateParts& parts);

  GenerateCall(CallContext context, std::shared_ptr<const PromptBuilder> prompts,
               const GenerateParts& parts);

 private:
  void Begin(const tokenizer::v1::GenerateRequest& request);
  absl::Status Prepare(const tokenizer::v1::GenerateRequest& request,
                       engine::v1::GenerateRequest& out);
  DecodeOptions DecodeOptionsFor(const tokenizer::v1::GenerateRequest& request) const;

  Flow OnEngineMessage(engine::v1::GenerateResponse& message);
  Flow OnStarted(engine::v1::GenerateStarted& started);
  Flow OnDelta(engine::v1::GenerateDelta& delta);
  Flow OnFinished(engine::v1::GenerateFinished& finished);
  void OnEngineDone(const absl::Status& status);
  void FinishBeforeEngine();
  void SendFinished(engine::v1::Usage usage, engine::v1::Timings timings);
  Flow Push(Response response);
  // Ends the call with an error that is the engine's or our own fault.
  Flow Fail(absl::Status status);
  void OnStreamDone(const StreamOutcome& outcome);

  const CallContext context_;
  const std::shared_ptr<const PromptBuilder> prompts_;
  const GenerateParts parts_;
  const absl::Duration arrived_;
  std::shared_ptr<Stream> stream_;
  PendingCall engine_call_;
  std::vector<ChoiceDecoder> choices_;
  std::string echo_;
  size_t choices_ended_ = 0;    // here, by a stop string or by the engine
  size_t choices_running_ = 0;  // in the engine
  bool sent_any_ = false;
  bool finished_ = false;
  absl::Duration started_ = absl::ZeroDuration();
  absl::Duration first_token_ = absl::ZeroDuration();
  // Read by the end of the call, which may come while the engine still sends.
  std::atomic<uint32_t> prompt_tokens_ = 0;
  std::atomic<uint32_t> completion_tokens_ = 0;
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_TOKENIZER_GENERATE_CALL_H_

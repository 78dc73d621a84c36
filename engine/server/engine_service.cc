#include "engine/server/engine_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/server/request_check.h"
#include "services/common/call_context.h"
#include "services/common/field_error.h"
#include "services/common/status_map.h"
#include "services/common/stream/server_stream.h"
#include "services/common/stream/unary.h"

namespace tessera::engine {
namespace {

using services::InvalidField;
using Stream = services::ServerStream<v1::GenerateResponse>;

v1::FinishReason ProtoOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
    case FinishReason::kAbort:
      return v1::FINISH_REASON_ABORT;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

void ToProto(const ChoiceEnd& end, v1::ChoiceEnd& proto) {
  proto.set_choice_index(end.choice_index);
  proto.set_reason(ProtoOf(end.reason));
  if (end.stop_token) proto.set_stop_token_id(end.stop_token->value);
  proto.set_completion_tokens(end.completion_tokens);
}

void ToProto(const ChoiceDelta& delta, v1::GenerateDelta& proto) {
  proto.set_choice_index(delta.choice_index);
  for (const GeneratedToken& token : delta.tokens) {
    v1::GeneratedToken& out = *proto.add_tokens();
    out.set_id(token.token.value);
    if (token.logprob) out.set_logprob(*token.logprob);
    for (const TokenLogprob& top : token.top_logprobs) {
      v1::TokenLogprob& logprob = *out.add_top_logprobs();
      logprob.set_id(top.token.value);
      logprob.set_logprob(top.logprob);
    }
  }
  if (delta.end) ToProto(*delta.end, *proto.mutable_end());
}

void ToProto(uint64_t us, google::protobuf::Duration& proto) {
  proto.set_seconds(static_cast<int64_t>(us / 1'000'000));
  proto.set_nanos(static_cast<int32_t>(us % 1'000'000 * 1000));
}

void ToProto(const RequestEnd& end, v1::GenerateFinished& proto) {
  for (const ChoiceEnd& choice : end.choices) ToProto(choice, *proto.add_choices());
  proto.mutable_usage()->set_prompt_tokens(end.prompt_tokens);
  proto.mutable_usage()->set_completion_tokens(end.completion_tokens);
  ToProto(end.queue_us, *proto.mutable_timings()->mutable_queue());
  ToProto(end.prefill_us, *proto.mutable_timings()->mutable_prefill());
  ToProto(end.decode_us, *proto.mutable_timings()->mutable_decode());
}

// Tokens of one choice that wait for a slow reader travel together.
bool Merge(v1::GenerateResponse& last, v1::GenerateResponse& next) {
  if (!last.has_delta() || !next.has_delta()) return false;
  v1::GenerateDelta& into = *last.mutable_delta();
  v1::GenerateDelta& from = *next.mutable_delta();
  if (into.choice_index() != from.choice_index() || into.has_end()) return false;
  into.mutable_tokens()->MergeFrom(from.tokens());
  if (from.has_end()) *into.mutable_end() = from.end();
  return true;
}

// The machine-readable reason of what ends a request.
absl::Status Explained(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
      return services::WithRetryDelay(services::WithReason(status, "QUEUE_FULL"),
                                      services::kRetryDelayDefault);
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
      return services::WithReason(status, "ENGINE_UNAVAILABLE");
    case absl::StatusCode::kDataLoss:
      return services::WithReason(status, "LOGITS_NOT_FINITE");
    default:
      return status;
  }
}

}  // namespace

// Hands events to the stream. `started` must come first though the executor may be faster than
// Submit returns: both sides take the lock, and Submit is called under it.
class EngineServiceAdapter::Sink final : public RequestSink {
 public:
  Sink(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}

  void OnDelta(ChoiceDelta delta) override {
    v1::GenerateResponse response;
    ToProto(delta, *response.mutable_delta());
    absl::MutexLock lock(&mutex_);
    // A closed stream has told so through on_cancel; the rest of the answer has no reader.
    (void)stream_->Push(std::move(response));
  }

  void OnEnd(RequestEnd end) override {
    absl::MutexLock lock(&mutex_);
    if (!end.status.ok()) {
      stream_->Finish(Explained(end.status));
      return;
    }
    v1::GenerateResponse response;
    ToProto(end, *response.mutable_finished());
    (void)stream_->Push(std::move(response));
    stream_->Finish(absl::OkStatus());
  }

  absl::Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  Stream& stream() { return *stream_; }

 private:
  absl::Mutex mutex_;
  const std::shared_ptr<Stream> stream_;
};

absl::StatusOr<GenerationRequest> EngineServiceAdapter::Check(const v1::GenerateRequest& proto,
                                                              const std::string& context_id,
                                                              absl::Duration remaining) {
  if (!proto.request_id().empty() && !services::IsUsableRequestId(proto.request_id())) {
    return InvalidField(
        "request_id",
        absl::StrCat("has ", proto.request_id().size(), " bytes; give 1 to ",
                     services::kRequestIdBytesMax, " printable ASCII characters without spaces"));
  }
  absl::StatusOr<GenerationRequest> request =
      CheckRequest(proto, parts_.model, parts_.request_ids.NextNumber());
  if (!request.ok()) return request.status();
  request->request_id = proto.request_id().empty() ? context_id : proto.request_id();
  if (remaining < absl::InfiniteDuration()) {
    const int64_t left_us = std::max<int64_t>(absl::ToInt64Microseconds(remaining), 0);
    request->deadline_us = parts_.clock.NowUs() + static_cast<uint64_t>(left_us);
  }
  return request;
}

absl::Status EngineServiceAdapter::Submit(GenerationRequest request, bool id_is_given,
                                          std::shared_ptr<Sink> sink) {
  v1::GenerateResponse response;
  v1::GenerateStarted& started = *response.mutable_started();
  started.set_request_id(request.request_id);
  started.set_model(parts_.model.name);
  started.set_prompt_tokens(static_cast<uint32_t>(request.prompt.size()));
  absl::MutexLock lock(&sink->mutex());
  const absl::Status status = parts_.executor.Submit(std::move(request), sink);
  if (status.ok()) {
    (void)sink->stream().Push(std::move(response));
  } else if (status.code() == absl::StatusCode::kAlreadyExists) {
    return id_is_given ? InvalidField("request_id", std::string(status.message())) : status;
  }
  return status;
}

grpc::ServerWriteReactor<v1::GenerateResponse>* EngineServiceAdapter::Generate(
    grpc::CallbackServerContext* context, const v1::GenerateRequest* request) {
  services::CallContext call =
      services::ReadCallContext(*context, request->request_id(), parts_.request_ids);
  absl::StatusOr<GenerationRequest> checked = Check(*request, call.request_id, call.Remaining());
  const std::string id = checked.ok() ? checked->request_id : call.request_id;
  auto stream = Stream::Start(
      context, {}, {.on_cancel = [this, id] { parts_.executor.Cancel(id); }, .merge = &Merge});
  absl::Status status = checked.status();
  if (status.ok()) {
    status =
        Submit(*std::move(checked), !request->request_id().empty(), std::make_shared<Sink>(stream));
  }
  if (!status.ok()) {
    parts_.metrics.OnRefused(status);
    parts_.log.Info("request refused", {{"request_id", call.request_id},
                                        {"code", services::CodeName(status.code())},
                                        {"field", services::FieldOf(status).value_or("")}});
    stream->Finish(Explained(status));
  }
  return stream->reactor();
}

grpc::ServerUnaryReactor* EngineServiceAdapter::GetModelInfo(grpc::CallbackServerContext* context,
                                                             const v1::GetModelInfoRequest*,
                                                             v1::GetModelInfoResponse* response) {
  const ModelFacts& model = parts_.model;
  response->set_model(model.name);
  response->set_architecture(model.architecture);
  response->set_vocab_size(model.vocab);
  response->set_context_tokens_max(model.context_tokens_max);
  response->set_sequences_max(model.sequences_max);
  response->set_queue_requests_max(model.queue_requests_max);
  for (TokenId id : model.eos_ids) response->add_eos_token_ids(id.value);
  response->set_device(model.device);
  response->set_workers(model.workers);
  if (parts_.state.draining()) {
    response->set_state(v1::MODEL_STATE_DRAINING);
  } else if (parts_.state.worker() == WorkerState::kLoading) {
    response->set_state(v1::MODEL_STATE_LOADING);
  } else if (parts_.state.worker() == WorkerState::kRecovering) {
    response->set_state(v1::MODEL_STATE_RECOVERING);
  } else {
    response->set_state(v1::MODEL_STATE_READY);
  }
  v1::SamplingParams& sampling = *response->mutable_default_sampling();
  sampling.set_temperature(model.temperature);
  sampling.set_top_p(model.top_p);
  sampling.set_top_k(model.top_k);
  sampling.set_repetition_penalty(model.repetition_penalty);
  response->set_version(model.version);
  return services::Reply(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* EngineServiceAdapter::GetLoad(grpc::CallbackServerContext* context,
                                                        const v1::GetLoadRequest*,
                                                        v1::GetLoadResponse* response) {
  const LoadFacts load = parts_.executor.Load();
  response->set_requests_running(load.requests_running);
  response->set_requests_waiting(load.requests_waiting);
  response->set_tokens_waiting(load.tokens_waiting);
  response->set_kv_usage(static_cast<float>(load.blocks_used) /
                         static_cast<float>(load.blocks_total));
  response->set_slots_used(load.slots_used);
  response->set_slots_total(load.slots_total);
  return services::Reply(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* EngineServiceAdapter::Abort(grpc::CallbackServerContext* context,
                                                      const v1::AbortRequest* request,
                                                      v1::AbortResponse* response) {
  if (request->request_ids_size() > kAbortIdsMax) {
    return services::Reply(
        context, InvalidField("request_ids", absl::StrCat("has ", request->request_ids_size(),
                                                          " ids; give at most ", kAbortIdsMax)));
  }
  for (std::string& id :
       parts_.executor.Abort({request->request_ids().begin(), request->request_ids().end()})) {
    response->add_aborted_request_ids(std::move(id));
  }
  return services::Reply(context, absl::OkStatus());
}

}  // namespace tessera::engine

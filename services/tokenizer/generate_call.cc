#include "services/tokenizer/generate_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/clients/channel.h"
#include "services/common/field_error.h"
#include "services/common/status_map.h"

namespace tessera::services {
namespace {

constexpr char kMethod[] = "Generate";

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration out;
  const int64_t ns = absl::ToInt64Nanoseconds(duration);
  out.set_seconds(ns / 1'000'000'000);
  out.set_nanos(static_cast<int32_t>(ns % 1'000'000'000));
  return out;
}

size_t PromptBytes(const tokenizer::v1::GenerateRequest& request) {
  return request.has_chat() ? TextBytes(request.chat()) : request.text().size();
}

uint64_t CodePoints(std::string_view text) {
  uint64_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

}  // namespace

grpc::ServerWriteReactor<GenerateCall::Response>* GenerateCall::Start(
    grpc::CallbackServerContext* context, const tokenizer::v1::GenerateRequest& request,
    CallContext call_context, std::shared_ptr<const PromptBuilder> prompts,
    const GenerateParts& parts) {
  auto call = std::make_shared<GenerateCall>(std::move(call_context), std::move(prompts), parts);
  parts.metrics.streams_open.Increment();
  call->stream_ = Stream::Start(
      context, StreamLimits(),
      {.on_cancel = [call] { call->engine_call_.Cancel(); },
       .on_writable = [call] { call->engine_call_.Resume(); },
       .on_done = [call](const StreamOutcome& outcome) { call->OnStreamDone(outcome); },
       .merge = &MergeResponses});
  grpc::ServerWriteReactor<Response>* const reactor = call->stream_->reactor();
  if (PromptBytes(request) <= kInlineBytesMax) {
    call->Begin(request);
    return reactor;
  }
  // The request may be gone before the pool comes to it, hence the copy.
  const absl::Status posted = parts.pool.Post([call, copy = request] { call->Begin(copy); });
  if (!posted.ok()) call->stream_->Finish(posted);
  return reactor;
}

GenerateCall::GenerateCall(CallContext context, std::shared_ptr<const PromptBuilder> prompts,
                           const GenerateParts& parts)
    : context_(std::move(context)),
      prompts_(std::move(prompts)),
      parts_(parts),
      arrived_(parts.clock.Monotonic()) {}

void GenerateCall::Begin(const tokenizer::v1::GenerateRequest& request) {
  if (engine_call_.cancelled()) return;  // gone while it waited for the pool
  engine::v1::GenerateRequest engine_request;
  const absl::Status status = Prepare(request, engine_request);
  if (!status.ok()) {
    stream_->Finish(status);
    return;
  }
  if (engine_call_.cancelled()) return;
  started_ = parts_.clock.Monotonic();
  engine_call_.Set(parts_.engine.Generate(
      context_, std::move(engine_request),
      {.on_message =
           [self = shared_from_this()](auto& message) { return self->OnEngineMessage(message); },
       .on_done = [self =
                       shared_from_this()](const absl::Status& end) { self->OnEngineDone(end); }}));
}

absl::Status GenerateCall::Prepare(const tokenizer::v1::GenerateRequest& request,
                                   engine::v1::GenerateRequest& out) {
  if (absl::Status status = CheckStopStrings(request.stop()); !status.ok()) return status;
  if (request.echo() && !request.has_text()) {
    return InvalidField("echo", "is only possible with a text prompt");
  }
  const absl::Duration begin = parts_.clock.Monotonic();
  const uint32_t context_tokens_max = parts_.watcher.context_tokens_max();
  if (request.has_tokens()) {
    absl::Status status =
        CheckPromptTokens(request.tokens().ids_size(), "tokens", context_tokens_max);
    if (!status.ok()) return status;
    *out.mutable_prompt() = request.tokens();
  } else if (request.has_chat() || request.has_text()) {
    absl::StatusOr<Prompt> prompt =
        request.has_chat() ? prompts_->FromChat(request.chat(), context_tokens_max)
                           : prompts_->FromText(request.text(), "text", context_tokens_max);
    if (!prompt.ok()) return prompt.status();
    out.mutable_prompt()->mutable_ids()->Add(prompt->ids.begin(), prompt->ids.end());
    parts_.metrics.prompt_characters.Increment(
        static_cast<double>(CodePoints(request.has_chat() ? prompt->text : request.text())));
    if (prompt->control_tokens_protected) parts_.metrics.protected_prompts.Increment();
    for (const std::string& name : prompt->ignored_kwargs) {
      parts_.log.Debug("the chat template does not read a variable",
                       {{"request_id", context_.request_id}, {"variable", name}});
    }
  } else {
    return InvalidField("prompt", "is missing; give chat, text or tokens");
  }
  parts_.metrics.prompt_build_seconds.Observe(
      absl::ToDoubleSeconds(parts_.clock.Monotonic() - begin));
  parts_.metrics.prompt_tokens.Increment(out.prompt().ids_size());
  prompt_tokens_ = static_cast<uint32_t>(out.prompt().ids_size());

  out.set_request_id(request.request_id());
  out.set_model(request.model());
  *out.mutable_sampling() = request.sampling();
  out.set_priority(request.priority());

  // A number of choices that is out of range is the engine's to refuse.
  constexpr uint32_t kChoicesMax = 16;
  const uint32_t choices = request.sampling().has_n() ? request.sampling().n() : 1;
  const DecodeOptions options = DecodeOptionsFor(request);
  for (uint32_t i = 0; i < std::min(choices, kChoicesMax); ++i) {
    absl::StatusOr<ChoiceDecoder> decoder =
        ChoiceDecoder::Create(*prompts_->model().tokenizer, i, options);
    if (!decoder.ok()) return decoder.status();
    choices_.push_back(*std::move(decoder));
  }
  choices_running_ = choices_.size();
  if (request.echo()) echo_ = request.text();
  return absl::OkStatus();
}

DecodeOptions GenerateCall::DecodeOptionsFor(const tokenizer::v1::GenerateRequest& request) const {
  DecodeOptions options;
  options.stop.assign(request.stop().begin(), request.stop().end());
  options.include_stop_string = request.include_stop_str_in_output();
  options.want_logprobs = request.sampling().has_logprobs();
  const std::vector<uint32_t>& end_ids = prompts_->model().end_ids;
  if (request.has_chat()) {
    // The parser reads "</think>" and "<tool_call>", which are special tokens: keep them all.
    options.decoder.drop_ids = end_ids;
    return options;
  }
  options.decoder.skip_special_tokens =
      request.has_skip_special_tokens() ? request.skip_special_tokens() : true;
  if (!request.include_stop_str_in_output()) {
    // A token that ends the choice is no part of its text.
    if (!request.sampling().ignore_eos()) options.decoder.drop_ids = end_ids;
    options.decoder.drop_ids.insert(options.decoder.drop_ids.end(),
                                    request.sampling().stop_token_ids().begin(),
                                    request.sampling().stop_token_ids().end());
  }
  return options;
}

Flow GenerateCall::OnEngineMessage(engine::v1::GenerateResponse& message) {
  if (finished_) return Flow::kContinue;
  switch (message.event_case()) {
    case engine::v1::GenerateResponse::kStarted:
      return OnStarted(*message.mutable_started());
    case engine::v1::GenerateResponse::kDelta:
      return OnDelta(*message.mutable_delta());
    case engine::v1::GenerateResponse::kFinished:
      return OnFinished(*message.mutable_finished());
    case engine::v1::GenerateResponse::EVENT_NOT_SET:
      break;
  }
  return Flow::kContinue;  // an event of a newer engine
}

Flow GenerateCall::OnStarted(engine::v1::GenerateStarted& started) {
  prompt_tokens_ = started.prompt_tokens();
  Response response;
  tokenizer::v1::GenerateStarted& out = *response.mutable_started();
  out.set_request_id(std::move(*started.mutable_request_id()));
  out.set_model(std::move(*started.mutable_model()));
  out.set_prompt_tokens(started.prompt_tokens());
  Flow flow = Push(std::move(response));
  if (echo_.empty()) return flow;
  for (size_t i = 0; i < choices_.size(); ++i) {
    Response echo;
    echo.mutable_delta()->set_choice_index(static_cast<uint32_t>(i));
    echo.mutable_delta()->set_text(echo_);
    if (Push(std::move(echo)) == Flow::kPause) flow = Flow::kPause;
  }
  return flow;
}

Flow GenerateCall::OnDelta(engine::v1::GenerateDelta& delta) {
  if (delta.choice_index() >= choices_.size()) {
    return Fail(absl::InternalError(
        absl::StrCat("the engine sent choice ", delta.choice_index(), " of ", choices_.size())));
  }
  ChoiceDecoder& choice = choices_[delta.choice_index()];
  if (delta.has_end() && choices_running_ > 0) --choices_running_;
  Flow flow = Flow::kContinue;
  if (!choice.ended()) {
    const uint32_t tokens_before = choice.completion_tokens();
    const bool send = choice.Append(delta);
    const uint32_t tokens = choice.completion_tokens() - tokens_before;
    completion_tokens_.fetch_add(tokens, std::memory_order_relaxed);
    parts_.metrics.generated_tokens.Increment(tokens);
    if (choice.ended()) ++choices_ended_;
    if (choice.stopped_early()) parts_.metrics.stop_string_ends.Increment();
    if (tokens > 0 && first_token_ == absl::ZeroDuration()) {
      first_token_ = parts_.clock.Monotonic();
      parts_.metrics.time_to_first_text_seconds.Observe(
          absl::ToDoubleSeconds(first_token_ - arrived_));
    }
    if (send) {
      const uint64_t characters_before = choice.characters();
      Response response;
      *response.mutable_delta() = choice.TakeDelta();
      parts_.metrics.generated_characters.Increment(
          static_cast<double>(choice.characters() - characters_before));
      sent_any_ = true;
      flow = Push(std::move(response));
    }
  }
  // The engine knows nothing of stop strings: once all choices have ended it is only told to go on.
  if (choices_ended_ == choices_.size() && choices_running_ > 0) FinishBeforeEngine();
  return flow;
}

void GenerateCall::FinishBeforeEngine() {
  engine::v1::Usage usage;
  usage.set_prompt_tokens(prompt_tokens_);
  // The engine would have said where the time went; seen from here, it looks like this.
  engine::v1::Timings timings;
  *timings.mutable_prefill() = ToProto(first_token_ - started_);
  *timings.mutable_decode() = ToProto(parts_.clock.Monotonic() - first_token_);
  SendFinished(std::move(usage), std::move(timings));
  engine_call_.Cancel();
}

Flow GenerateCall::OnFinished(engine::v1::GenerateFinished& finished) {
  if (choices_ended_ != choices_.size()) {
    return Fail(absl::InternalError("the engine finished before all choices had ended"));
  }
  SendFinished(std::move(*finished.mutable_usage()), std::move(*finished.mutable_timings()));
  return Flow::kContinue;
}

void GenerateCall::SendFinished(engine::v1::Usage usage, engine::v1::Timings timings) {
  finished_ = true;
  Response response;
  tokenizer::v1::GenerateFinished& out = *response.mutable_finished();
  uint32_t completion_tokens = 0;
  for (const ChoiceDecoder& choice : choices_) {
    *out.add_choices() = choice.end();
    completion_tokens += choice.completion_tokens();
  }
  usage.set_completion_tokens(completion_tokens);
  *out.mutable_usage() = std::move(usage);
  *out.mutable_timings() = std::move(timings);
  Push(std::move(response));
  stream_->Finish(absl::OkStatus());
}

Flow GenerateCall::Push(Response response) {
  switch (stream_->Push(std::move(response))) {
    case PushResult::kOk:
      return Flow::kContinue;
    case PushResult::kBehind:
      return Flow::kPause;
    case PushResult::kClosed:
      engine_call_.Cancel();
      break;
  }
  return Flow::kContinue;
}

Flow GenerateCall::Fail(absl::Status status) {
  finished_ = true;
  parts_.log.Error("the engine broke the protocol",
                   {{"request_id", context_.request_id}, {"error", std::string(status.message())}});
  parts_.metrics.EngineFailed(status.code());
  stream_->Finish(std::move(status));
  engine_call_.Cancel();
  return Flow::kContinue;
}

void GenerateCall::OnEngineDone(const absl::Status& status) {
  if (finished_) return;
  finished_ = true;
  if (status.ok()) {
    stream_->Finish(absl::InternalError("the engine ended its stream without finishing"));
    return;
  }
  if (!engine_call_.cancelled()) parts_.metrics.EngineFailed(status.code());
  stream_->Finish(PeerStatus(status, "engine", sent_any_));
}

void GenerateCall::OnStreamDone(const StreamOutcome& outcome) {
  const absl::Duration took = parts_.clock.Monotonic() - arrived_;
  parts_.metrics.streams_open.Decrement();
  parts_.metrics.Ended(kMethod, outcome.status.code(), took);
  if (outcome.reader_cut) parts_.metrics.slow_readers_cut.Increment();
  const std::string_view code = CodeName(outcome.status.code());
  const bool our_fault = outcome.status.code() == absl::StatusCode::kInternal;
  if (!parts_.log.Enabled(our_fault ? LogLevel::kError : LogLevel::kInfo)) return;
  // A status message can quote the request (a role, a tool's name); its field is enough.
  const std::string field = FieldOf(outcome.status).value_or("");
  const std::initializer_list<LogField> fields = {{"request_id", context_.request_id},
                                                  {"method", kMethod},
                                                  {"code", code},
                                                  {"field", field},
                                                  {"prompt_tokens", prompt_tokens_.load()},
                                                  {"completion_tokens", completion_tokens_.load()},
                                                  {"seconds", absl::ToDoubleSeconds(took)},
                                                  {"slow_reader", outcome.reader_cut}};
  if (our_fault) {
    parts_.log.Error("call ended", fields);
  } else {
    parts_.log.Info("call ended", fields);
  }
}

}  // namespace tessera::services

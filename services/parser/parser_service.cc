#include "services/parser/parser_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/clients/channel.h"
#include "services/common/call_context.h"
#include "services/common/field_error.h"
#include "services/common/status_map.h"
#include "services/common/stream/client_call.h"
#include "services/common/stream/server_stream.h"
#include "services/common/stream/unary.h"
#include "services/parser/formats/format_registry.h"

namespace tessera::parser {
namespace {

using services::CallContext;
using services::Flow;
using services::InvalidField;
using services::PendingCall;
using services::PushResult;

constexpr std::string_view kPeer = "tokenizer";

// What a finished call is counted and logged with. A plain value.
struct CallRecord {
  std::string_view method;
  std::string request_id;
  absl::Duration began;  // on the monotonic clock
};

void LogEnd(const services::Logger& log, const CallRecord& record, const absl::Status& status,
            absl::Duration took) {
  log.Info("call ended", {{"request_id", record.request_id},
                          {"method", record.method},
                          {"code", services::CodeName(status.code())},
                          {"seconds", absl::ToDoubleSeconds(took)}});
}

// One streamed chat between the stream above and the call below. Shared by both; each drops its
// reference when it is over.
struct ChatRelay {
  absl::Mutex mutex;
  std::unique_ptr<ChatSession> session ABSL_GUARDED_BY(mutex);
  std::shared_ptr<services::ServerStream<v1::ChatStreamResponse>> stream;
  PendingCall below;

  Flow OnMessage(tokenizer::v1::GenerateResponse& message) ABSL_LOCKS_EXCLUDED(mutex) {
    PushResult pushed = PushResult::kOk;
    const ChatSession::Emit emit = [&](v1::ChatStreamResponse event) {
      if (pushed != PushResult::kClosed) pushed = stream->Push(std::move(event));
    };
    absl::Status status;
    bool ended = false;
    {
      absl::MutexLock lock(&mutex);
      if (session->finished()) return Flow::kContinue;
      status = session->OnEvent(message, emit);
      if (status.ok() && session->complete()) {
        session->FinishEarly(emit);
        ended = true;
      }
    }
    if (!status.ok() || ended) {
      stream->Finish(status);
      below.Cancel();
    } else if (pushed == PushResult::kClosed) {
      below.Cancel();
    }
    return pushed == PushResult::kBehind ? Flow::kPause : Flow::kContinue;
  }

  void OnDone(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex) {
    absl::Status outcome = status;
    {
      absl::MutexLock lock(&mutex);
      if (session->finished()) {
        outcome = absl::OkStatus();
      } else if (status.ok()) {
        outcome = absl::InternalError("the tokenizer's stream ended without `finished`");
      } else {
        outcome = services::PeerStatus(status, kPeer, session->sent_any());
      }
    }
    stream->Finish(outcome);
  }
};

// Text waiting to be written is joined, so that a reader that is a little late gets fewer messages.
bool MergeTextDeltas(v1::ChatStreamResponse& last, v1::ChatStreamResponse& next) {
  if (!last.has_delta() || !next.has_delta()) return false;
  v1::ChatDelta& to = *last.mutable_delta();
  v1::ChatDelta& from = *next.mutable_delta();
  if (to.choice_index() != from.choice_index() || to.has_end() || !to.tool_calls().empty() ||
      !from.tool_calls().empty() || (to.has_content() && from.has_reasoning())) {
    return false;
  }
  if (from.has_reasoning()) to.mutable_reasoning()->append(from.reasoning());
  if (from.has_content()) to.mutable_content()->append(from.content());
  to.mutable_logprobs()->MergeFrom(from.logprobs());
  to.set_completion_tokens(from.completion_tokens());
  if (from.has_end()) *to.mutable_end() = std::move(*from.mutable_end());
  return true;
}

// One raw completion: events pass through as they are.
struct CompleteRelay {
  std::shared_ptr<services::ServerStream<v1::CompleteStreamResponse>> stream;
  PendingCall below;
  bool sent_any = false;  // used by the call below only

  Flow OnMessage(tokenizer::v1::GenerateResponse& message) {
    sent_any = sent_any || message.has_delta();
    v1::CompleteStreamResponse response;
    *response.mutable_event() = std::move(message);
    const PushResult pushed = stream->Push(std::move(response));
    if (pushed == PushResult::kClosed) below.Cancel();
    return pushed == PushResult::kBehind ? Flow::kPause : Flow::kContinue;
  }
};

// One unary chat. The response is the handler's until the reply has finished.
struct ChatReply {
  absl::Mutex mutex;
  std::unique_ptr<ChatSession> session ABSL_GUARDED_BY(mutex);
  absl::Status failure ABSL_GUARDED_BY(mutex);
  std::shared_ptr<services::ServerReply> reply;
  v1::ChatResponse* response = nullptr;
  PendingCall below;

  Flow OnMessage(tokenizer::v1::GenerateResponse& message) ABSL_LOCKS_EXCLUDED(mutex) {
    bool cancel = false;
    {
      absl::MutexLock lock(&mutex);
      if (session->finished()) return Flow::kContinue;
      const ChatSession::Emit emit = [](v1::ChatStreamResponse) {};
      failure = session->OnEvent(message, emit);
      if (failure.ok() && session->complete()) session->FinishEarly(emit);
      cancel = !failure.ok() || session->finished();
    }
    if (cancel) below.Cancel();
    return Flow::kContinue;
  }

  absl::Status Take(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex) {
    absl::MutexLock lock(&mutex);
    if (!failure.ok()) return failure;
    if (session->finished()) {
      *response = session->TakeResponse();
      return absl::OkStatus();
    }
    if (status.ok()) return absl::InternalError("the tokenizer's stream ended without `finished`");
    // Nothing has been sent of a whole answer, so it may be asked for again.
    return services::PeerStatus(status, kPeer, /*sent_any=*/false);
  }
};

}  // namespace

ParserService::ParserService(FormatFlags flags, services::TokenizerClient& tokenizer,
                             const services::Logger& log, services::RequestIds& ids,
                             const services::Clock& clock, ParserMetrics& metrics,
                             std::function<void(bool serving)> serving_changed)
    : flags_(std::move(flags)),
      tokenizer_(tokenizer),
      log_(log),
      ids_(ids),
      clock_(clock),
      metrics_(metrics),
      serving_changed_(std::move(serving_changed)) {
  watch_ = tokenizer_.Watch([this](bool serving) { OnTokenizerHealth(serving); });
}

ParserService::~ParserService() { watch_.reset(); }

void ParserService::OnTokenizerHealth(bool serving) {
  if (!serving) {
    // While the processes start this is as it should be; later it is not.
    if (Facts().ok()) {
      log_.Warning("the tokenizer is not serving");
    } else {
      log_.Info("waiting for the tokenizer");
    }
    serving_changed_(false);
    return;
  }
  CallContext context;
  context.LimitTo(services::kUnaryDurationMax);
  tokenizer_.GetModelInfo(context,
                          [this](const absl::StatusOr<tokenizer::v1::GetModelInfoResponse>& info) {
                            if (!info.ok()) {
                              log_.Warning("the tokenizer does not say what model it has",
                                           {{"error", std::string(info.status().message())}});
                              return;
                            }
                            TakeModelInfo(*info);
                            serving_changed_(true);
                          });
}

void ParserService::TakeModelInfo(const tokenizer::v1::GetModelInfoResponse& info) {
  ModelFacts facts;
  const FormatGuess guess = GuessFormats(info.chat_template());
  facts.reasoning_format =
      flags_.reasoning_format == "auto" ? guess.reasoning_format : flags_.reasoning_format;
  facts.tool_format = flags_.tool_format == "auto" ? guess.tool_format : flags_.tool_format;
  nlohmann::ordered_json kwargs = nlohmann::ordered_json::parse(
      info.default_chat_template_kwargs_json(), nullptr, /*allow_exceptions=*/false);
  if (kwargs.is_object()) facts.default_kwargs = std::move(kwargs);
  log_.Info("serving", {{"model", info.engine().model()},
                        {"reasoning_format", facts.reasoning_format},
                        {"tool_format", facts.tool_format}});
  absl::MutexLock lock(&mutex_);
  facts_ = std::move(facts);
}

absl::StatusOr<ModelFacts> ParserService::Facts() const {
  absl::MutexLock lock(&mutex_);
  if (!facts_.has_value()) {
    return absl::UnavailableError("the tokenizer has not been reached yet; try again");
  }
  return *facts_;
}

absl::StatusOr<ParserService::Prepared> ParserService::Prepare(const v1::ChatOptions& options,
                                                               ChatSession::Form form,
                                                               const std::string& request_id) {
  const absl::StatusOr<ModelFacts> facts = Facts();
  if (!facts.ok()) return facts.status();
  absl::StatusOr<ChatPlan> plan = PlanChat(options, *facts);
  if (!plan.ok()) return plan.status();
  absl::StatusOr<std::unique_ptr<ChatSession>> session =
      ChatSession::Create(*plan, form, ids_.NextNumber());
  if (!session.ok()) return session.status();
  plan->generate.set_request_id(request_id);
  return Prepared{*std::move(session), std::move(plan->generate)};
}

grpc::ServerWriteReactor<v1::ChatStreamResponse>* ParserService::ChatStream(
    grpc::CallbackServerContext* context, const v1::ChatStreamRequest* request) {
  auto relay = std::make_shared<ChatRelay>();
  const CallContext call =
      services::ReadCallContext(*context, request->options().request_id(), ids_);
  const CallRecord record{"ChatStream", call.request_id, clock_.Monotonic()};
  metrics_.StreamOpened();
  relay->stream = services::ServerStream<v1::ChatStreamResponse>::Start(
      context, {},
      {.on_cancel = [relay] { relay->below.Cancel(); },
       .on_writable = [relay] { relay->below.Resume(); },
       .on_done =
           [this, relay, record](const services::StreamOutcome& outcome) {
             const absl::Duration took = clock_.Monotonic() - record.began;
             metrics_.StreamClosed();
             metrics_.CallEnded(record.method, outcome.status, took);
             if (outcome.reader_cut) metrics_.SlowReaderCut();
             LogEnd(log_, record, outcome.status, took);
             absl::MutexLock lock(&relay->mutex);
             if (relay->session == nullptr) return;
             metrics_.AnswerEnded(relay->session->counters(), relay->session->usage(),
                                  relay->session->empty_replies());
           },
       .merge = MergeTextDeltas});

  absl::StatusOr<Prepared> prepared =
      Prepare(request->options(), ChatSession::Form::kStream, call.request_id);
  if (!prepared.ok()) {
    relay->stream->Finish(prepared.status());
    return relay->stream->reactor();
  }
  {
    absl::MutexLock lock(&relay->mutex);
    relay->session = std::move(prepared->session);
  }
  relay->below.Set(tokenizer_.Generate(
      call, std::move(prepared->generate),
      {.on_message =
           [relay](tokenizer::v1::GenerateResponse& message) { return relay->OnMessage(message); },
       .on_done = [relay](const absl::Status& status) { relay->OnDone(status); }}));
  return relay->stream->reactor();
}

grpc::ServerUnaryReactor* ParserService::Chat(grpc::CallbackServerContext* context,
                                              const v1::ChatRequest* request,
                                              v1::ChatResponse* response) {
  const CallContext call =
      services::ReadCallContext(*context, request->options().request_id(), ids_);
  const CallRecord record{"Chat", call.request_id, clock_.Monotonic()};
  absl::StatusOr<Prepared> prepared =
      Prepare(request->options(), ChatSession::Form::kWhole, call.request_id);
  if (!prepared.ok()) {
    const absl::Duration took = clock_.Monotonic() - record.began;
    metrics_.CallEnded(record.method, prepared.status(), took);
    LogEnd(log_, record, prepared.status(), took);
    return services::Reply(context, prepared.status());
  }
  auto state = std::make_shared<ChatReply>();
  state->response = response;
  {
    absl::MutexLock lock(&state->mutex);
    state->session = std::move(prepared->session);
  }
  metrics_.StreamOpened();
  state->reply = services::ServerReply::Start({.on_cancel = [state] { state->below.Cancel(); }});
  state->below.Set(tokenizer_.Generate(
      call, std::move(prepared->generate),
      {.on_message =
           [state](tokenizer::v1::GenerateResponse& message) { return state->OnMessage(message); },
       .on_done =
           [this, state, record](const absl::Status& status) {
             const absl::Status outcome = state->Take(status);
             const absl::Duration took = clock_.Monotonic() - record.began;
             metrics_.StreamClosed();
             metrics_.CallEnded(record.method, outcome, took);
             LogEnd(log_, record, outcome, took);
             {
               absl::MutexLock lock(&state->mutex);
               metrics_.AnswerEnded(state->session->counters(), state->session->usage(),
                                    state->session->empty_replies());
             }
             state->reply->Finish(outcome);
           }}));
  return state->reply->reactor();
}

grpc::ServerWriteReactor<v1::CompleteStreamResponse>* ParserService::CompleteStream(
    grpc::CallbackServerContext* context, const v1::CompleteStreamRequest* request) {
  auto relay = std::make_shared<CompleteRelay>();
  const CallContext call =
      services::ReadCallContext(*context, request->generate().request_id(), ids_);
  const CallRecord record{"CompleteStream", call.request_id, clock_.Monotonic()};
  metrics_.StreamOpened();
  relay->stream = services::ServerStream<v1::CompleteStreamResponse>::Start(
      context, {},
      {.on_cancel = [relay] { relay->below.Cancel(); },
       .on_writable = [relay] { relay->below.Resume(); },
       .on_done =
           [this, record](const services::StreamOutcome& outcome) {
             metrics_.StreamClosed();
             if (outcome.reader_cut) metrics_.SlowReaderCut();
             metrics_.CallEnded(record.method, outcome.status, clock_.Monotonic() - record.began);
             LogEnd(log_, record, outcome.status, clock_.Monotonic() - record.began);
           }});
  if (request->generate().has_chat()) {
    relay->stream->Finish(
        InvalidField("generate.chat", "holds messages; use ChatStream for a conversation"));
    return relay->stream->reactor();
  }
  tokenizer::v1::GenerateRequest below = request->generate();
  below.set_request_id(call.request_id);
  relay->below.Set(tokenizer_.Generate(
      call, std::move(below),
      {.on_message =
           [relay](tokenizer::v1::GenerateResponse& message) { return relay->OnMessage(message); },
       .on_done =
           [relay](const absl::Status& status) {
             relay->stream->Finish(
                 status.ok() ? status : services::PeerStatus(status, kPeer, relay->sent_any));
           }}));
  return relay->stream->reactor();
}

absl::StatusOr<ParsedMessage> ParserService::ParseText(const std::string& text,
                                                       ParserOptions options) {
  if (text.size() > kParseTextBytesMax) {
    return InvalidField(
        "text", absl::StrCat("has ", text.size(), " bytes; the limit is ", kParseTextBytesMax));
  }
  // The caller has one format to give, whichever of the two this is about.
  if (absl::Status known = CheckFormatNames(options.reasoning_format, options.tool_format);
      !known.ok()) {
    const std::string_view message(known.message().data(), known.message().size());
    return InvalidField("format", message.substr(message.find(": ") + 2));
  }
  SeededCallIds ids(ids_.NextNumber());
  const absl::StatusOr<std::unique_ptr<OutputParser>> parser = CreateOutputParser(options, &ids);
  if (!parser.ok()) return parser.status();
  std::vector<ParserEvent> events;
  (*parser)->Push(text, &events);
  (*parser)->Finish(EngineFinish::kStop, &events);
  metrics_.AnswerEnded((*parser)->counters(), {}, /*empty_replies=*/0);
  return Assemble(events);
}

grpc::ServerUnaryReactor* ParserService::ReplyTo(grpc::CallbackServerContext* context,
                                                 std::string_view method, absl::Duration began,
                                                 const absl::Status& status) {
  metrics_.CallEnded(method, status, clock_.Monotonic() - began);
  return services::Reply(context, status);
}

grpc::ServerUnaryReactor* ParserService::ParseReasoning(grpc::CallbackServerContext* context,
                                                        const v1::ParseReasoningRequest* request,
                                                        v1::ParseReasoningResponse* response) {
  const absl::Duration began = clock_.Monotonic();
  const auto reply = [&](const absl::Status& status) {
    return ReplyTo(context, "ParseReasoning", began, status);
  };
  const absl::StatusOr<ModelFacts> facts = Facts();
  if (request->format().empty() && !facts.ok()) return reply(facts.status());
  ParserOptions options;
  options.reasoning_format =
      request->format().empty() ? facts->reasoning_format : request->format();
  options.tool_format = "none";
  options.enable_thinking = !request->has_enable_thinking() || request->enable_thinking();
  absl::StatusOr<ParsedMessage> message = ParseText(request->text(), std::move(options));
  if (!message.ok()) return reply(message.status());
  if (message->reasoning.has_value()) response->set_reasoning(*std::move(message->reasoning));
  if (message->content.has_value()) response->set_content(*std::move(message->content));
  return reply(absl::OkStatus());
}

grpc::ServerUnaryReactor* ParserService::ParseToolCalls(grpc::CallbackServerContext* context,
                                                        const v1::ParseToolCallsRequest* request,
                                                        v1::ParseToolCallsResponse* response) {
  const absl::Duration began = clock_.Monotonic();
  const auto reply = [&](const absl::Status& status) {
    return ReplyTo(context, "ParseToolCalls", began, status);
  };
  const absl::StatusOr<ModelFacts> facts = Facts();
  if (request->format().empty() && !facts.ok()) return reply(facts.status());
  absl::StatusOr<std::vector<Tool>> tools = ReadTools(request->tools());
  if (!tools.ok()) return reply(tools.status());
  ParserOptions options;
  options.reasoning_format = "none";
  options.tool_format = request->format().empty() ? facts->tool_format : request->format();
  options.enable_thinking = false;
  options.tools = *std::move(tools);
  absl::StatusOr<ParsedMessage> message = ParseText(request->text(), std::move(options));
  if (!message.ok()) return reply(message.status());
  if (message->content.has_value()) response->set_content(*std::move(message->content));
  for (ParsedToolCall& call : message->tool_calls) {
    v1::ToolCall* const out = response->add_tool_calls();
    out->set_id(std::move(call.id));
    out->set_name(std::move(call.name));
    out->set_arguments_json(std::move(call.arguments));
  }
  return reply(absl::OkStatus());
}

grpc::ServerUnaryReactor* ParserService::GetModelInfo(grpc::CallbackServerContext* context,
                                                      const v1::GetModelInfoRequest*,
                                                      v1::GetModelInfoResponse* response) {
  const CallContext call = services::ReadCallContext(*context, "", ids_);
  auto below = std::make_shared<PendingCall>();
  auto reply = services::ServerReply::Start({.on_cancel = [below] { below->Cancel(); }});
  below->Set(tokenizer_.GetModelInfo(
      call, [this, reply, response](absl::StatusOr<tokenizer::v1::GetModelInfoResponse> info) {
        if (!info.ok()) {
          reply->Finish(services::PeerStatus(info.status(), kPeer, /*sent_any=*/false));
          return;
        }
        *response->mutable_tokenizer() = *std::move(info);
        if (const absl::StatusOr<ModelFacts> facts = Facts(); facts.ok()) {
          response->set_reasoning_format(facts->reasoning_format);
          response->set_tool_format(facts->tool_format);
        }
        reply->Finish(absl::OkStatus());
      }));
  return reply->reactor();
}

}  // namespace tessera::parser

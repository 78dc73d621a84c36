#include "services/parser/chat_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tessera::parser {
namespace {

EngineFinish ToEngineFinish(const tokenizer::v1::ChoiceEnd& end) {
  switch (end.reason()) {
    case engine::v1::FINISH_REASON_LENGTH:
      return EngineFinish::kLength;
    case engine::v1::FINISH_REASON_ABORT:
      return EngineFinish::kAbort;
    default:
      return end.has_stop_string() ? EngineFinish::kStopString : EngineFinish::kStop;
  }
}

v1::FinishReason ToProto(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
    case FinishReason::kToolCalls:
      return v1::FINISH_REASON_TOOL_CALLS;
    case FinishReason::kAborted:
      return v1::FINISH_REASON_ABORT;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

v1::ChatChoiceEnd ToChatEnd(const tokenizer::v1::ChoiceEnd& end, FinishReason reason) {
  v1::ChatChoiceEnd chat_end;
  chat_end.set_finish_reason(ToProto(reason));
  if (end.has_stop_string()) chat_end.set_stop_string(end.stop_string());
  if (end.has_stop_token_id()) chat_end.set_stop_token_id(end.stop_token_id());
  return chat_end;
}

// Whether an event can join a delta that already holds later parts of the order reasoning, content,
// calls: a delta is read in that order.
bool Fits(const v1::ChatDelta& delta, EventKind kind) {
  switch (kind) {
    case EventKind::kReasoning:
      return !delta.has_content() && delta.tool_calls().empty();
    case EventKind::kContent:
      return delta.tool_calls().empty();
    default:
      return true;
  }
}

void AddEvent(const ParserEvent& event, v1::ChatDelta& delta) {
  switch (event.kind) {
    case EventKind::kReasoning:
      delta.mutable_reasoning()->append(event.text);
      return;
    case EventKind::kContent:
      delta.mutable_content()->append(event.text);
      return;
    case EventKind::kToolCallBegin: {
      v1::ToolCallDelta* const call = delta.add_tool_calls();
      call->set_index(event.call_index);
      call->set_id(event.id);
      call->set_name(event.name);
      return;
    }
    case EventKind::kArguments: {
      const int last = delta.tool_calls_size() - 1;
      const bool joins =
          last >= 0 && delta.tool_calls(last).index() == static_cast<uint32_t>(event.call_index);
      v1::ToolCallDelta* const call =
          joins ? delta.mutable_tool_calls(last) : delta.add_tool_calls();
      call->set_index(event.call_index);
      call->mutable_arguments_fragment()->append(event.text);
      return;
    }
    case EventKind::kToolCallEnd:
    case EventKind::kFinish:
      return;
  }
}

bool HasOutput(const v1::ChatDelta& delta) {
  return delta.has_reasoning() || delta.has_content() || !delta.tool_calls().empty();
}

void Sum(const ParserCounters& from, ParserCounters& to) {
  to.raw_strings += from.raw_strings;
  to.malformed_calls += from.malformed_calls;
  to.markers_as_text += from.markers_as_text;
  to.parameters_dropped += from.parameters_dropped;
  to.calls_dropped += from.calls_dropped;
  to.implicit_reasoning_ends += from.implicit_reasoning_ends;
  to.promoted_replies += from.promoted_replies;
  to.invalid_utf8 += from.invalid_utf8;
  to.limits_hit += from.limits_hit;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChatSession>> ChatSession::Create(const ChatPlan& plan, Form form,
                                                                 uint64_t id_seed) {
  std::unique_ptr<ChatSession> session(new ChatSession(plan, form));
  for (uint32_t i = 0; i < plan.choices; ++i) {
    ChoiceState choice;
    choice.ids = std::make_unique<SeededCallIds>(id_seed + i);
    absl::StatusOr<std::unique_ptr<OutputParser>> parser =
        CreateOutputParser(plan.options, choice.ids.get());
    if (!parser.ok()) return parser.status();
    choice.parser = *std::move(parser);
    session->choices_.push_back(std::move(choice));
  }
  return session;
}

absl::Status ChatSession::OnEvent(tokenizer::v1::GenerateResponse& event, const Emit& emit) {
  if (finished_) return absl::InternalError("the tokenizer sent an event after `finished`");
  switch (event.event_case()) {
    case tokenizer::v1::GenerateResponse::kStarted: {
      if (started_) return absl::InternalError("the tokenizer sent `started` twice");
      started_ = true;
      request_id_ = event.started().request_id();
      model_ = event.started().model();
      usage_.set_prompt_tokens(event.started().prompt_tokens());
      if (form_ == Form::kWhole) return absl::OkStatus();
      v1::ChatStreamResponse response;
      v1::ChatStarted* const started = response.mutable_started();
      started->set_request_id(request_id_);
      started->set_model(model_);
      started->set_prompt_tokens(event.started().prompt_tokens());
      emit(std::move(response));
      return absl::OkStatus();
    }
    case tokenizer::v1::GenerateResponse::kDelta:
      if (!started_) return absl::InternalError("the tokenizer sent a delta before `started`");
      return OnDelta(*event.mutable_delta(), emit);
    case tokenizer::v1::GenerateResponse::kFinished:
      for (const ChoiceState& choice : choices_) {
        if (!choice.ended) return absl::InternalError("the tokenizer finished with a choice open");
      }
      usage_.set_prompt_tokens(event.finished().usage().prompt_tokens());
      usage_.set_cached_prompt_tokens(event.finished().usage().cached_prompt_tokens());
      timings_ = event.finished().timings();
      EmitFinished(emit);
      return absl::OkStatus();
    case tokenizer::v1::GenerateResponse::EVENT_NOT_SET:
      return absl::OkStatus();  // an event of a later version
  }
  return absl::OkStatus();
}

absl::Status ChatSession::OnDelta(tokenizer::v1::GenerateDelta& delta, const Emit& emit) {
  if (delta.choice_index() >= choices_.size()) {
    return absl::InternalError(
        absl::StrCat("the tokenizer sent choice ", delta.choice_index(), " of ", choices_.size()));
  }
  ChoiceState& choice = choices_[delta.choice_index()];
  if (choice.ended) return absl::InternalError("the tokenizer sent a delta after a choice's end");
  TakeTokens(delta, choice);
  events_.clear();
  choice.parser->Push(delta.text(), &events_);
  choice.text_bytes += delta.text().size();
  if (!delta.has_end()) {
    choice.reasoning.Settle(*choice.parser);
    EmitEvents(delta.choice_index(), events_, std::nullopt, emit);
    return absl::OkStatus();
  }
  choice.parser->Finish(ToEngineFinish(delta.end()), &events_);
  choice.reasoning.Settle(*choice.parser);
  choice.ended = true;
  // A call that was cut short by `complete` has been counted by its tokens, as any other.
  EmitEvents(delta.choice_index(), events_, ToChatEnd(delta.end(), events_.back().finish_reason),
             emit);
  return absl::OkStatus();
}

void ChatSession::TakeTokens(tokenizer::v1::GenerateDelta& delta, ChoiceState& choice) {
  uint64_t offset = choice.text_bytes;
  choice.completion_tokens += delta.tokens_size();
  for (tokenizer::v1::TextToken& token : *delta.mutable_tokens()) {
    choice.reasoning.Add(token.text_bytes());
    const uint64_t begin = offset;
    offset += token.text_bytes();
    if (plan_.logprobs) choice.pending.push_back({begin, std::move(token)});
  }
}

template <class Tokens>
void ChatSession::MovePending(ChoiceState& choice, bool all, Tokens& out) {
  const uint64_t decided = choice.parser->decided_offset();
  const uint64_t reasoning_end = choice.parser->reasoning_end_offset();
  size_t moved = 0;
  for (PendingToken& pending : choice.pending) {
    if (!all && pending.begin >= decided) break;
    ++moved;
    if (!plan_.include_reasoning && pending.begin < reasoning_end) continue;
    *out.Add() = std::move(pending.token);
  }
  choice.pending.erase(choice.pending.begin(), choice.pending.begin() + moved);
}

void ChatSession::EmitEvents(uint32_t index, std::vector<ParserEvent>& events,
                             std::optional<v1::ChatChoiceEnd> end, const Emit& emit) {
  ChoiceState& choice = choices_[index];
  if (form_ == Form::kWhole) {
    std::move(events.begin(), events.end(), std::back_inserter(choice.kept));
    if (end.has_value()) choice.end = *std::move(end);
    return;
  }
  v1::ChatStreamResponse response;
  v1::ChatDelta* delta = nullptr;
  const auto begin_delta = [&] {
    delta = response.mutable_delta();
    delta->set_choice_index(index);
    delta->set_completion_tokens(choice.completion_tokens);
  };
  begin_delta();
  for (const ParserEvent& event : events) {
    if (event.kind == EventKind::kReasoning && !plan_.include_reasoning) continue;
    if (!Fits(*delta, event.kind)) {
      emit(std::exchange(response, {}));
      begin_delta();
    }
    AddEvent(event, *delta);
    choice.said_anything = choice.said_anything || HasOutput(*delta);
  }
  // What is not decided keeps its log probabilities back; they travel with the next delta.
  if (HasOutput(*delta) || end.has_value()) {
    MovePending(choice, end.has_value(), *delta->mutable_logprobs());
    if (HasOutput(*delta)) sent_any_ = true;
    if (end.has_value()) {
      *delta->mutable_end() = *std::move(end);
      if (!choice.said_anything) ++empty_replies_;
    }
    emit(std::move(response));
  }
}

bool ChatSession::complete() const {
  return !finished_ && std::all_of(choices_.begin(), choices_.end(), [](const ChoiceState& c) {
    return c.ended || c.parser->complete();
  });
}

void ChatSession::FinishEarly(const Emit& emit) {
  for (uint32_t i = 0; i < choices_.size(); ++i) {
    ChoiceState& choice = choices_[i];
    if (choice.ended) continue;
    events_.clear();
    choice.parser->Finish(EngineFinish::kStop, &events_);
    choice.reasoning.Settle(*choice.parser);
    choice.ended = true;
    EmitEvents(i, events_, ToChatEnd({}, events_.back().finish_reason), emit);
  }
  EmitFinished(emit);
}

void ChatSession::EmitFinished(const Emit& emit) {
  uint32_t completion_tokens = 0;
  uint64_t reasoning_tokens = 0;
  for (const ChoiceState& choice : choices_) {
    completion_tokens += choice.completion_tokens;
    reasoning_tokens += choice.reasoning.reasoning_tokens();
  }
  usage_.set_completion_tokens(completion_tokens);
  usage_.set_reasoning_tokens(reasoning_tokens);
  finished_ = true;
  if (form_ == Form::kWhole) return;
  v1::ChatStreamResponse response;
  *response.mutable_finished()->mutable_usage() = usage_;
  *response.mutable_finished()->mutable_timings() = timings_;
  emit(std::move(response));
}

v1::ChatResponse ChatSession::TakeResponse() {
  v1::ChatResponse response;
  response.set_request_id(request_id_);
  response.set_model(model_);
  for (uint32_t i = 0; i < choices_.size(); ++i) {
    ChoiceState& state = choices_[i];
    ParsedMessage message = Assemble(state.kept);
    v1::Choice* const choice = response.add_choices();
    choice->set_index(i);
    if (message.reasoning.has_value() && plan_.include_reasoning) {
      choice->set_reasoning(*std::move(message.reasoning));
    }
    if (message.content.has_value()) choice->set_content(*std::move(message.content));
    for (ParsedToolCall& call : message.tool_calls) {
      v1::ToolCall* const out = choice->add_tool_calls();
      out->set_id(std::move(call.id));
      out->set_name(std::move(call.name));
      out->set_arguments_json(std::move(call.arguments));
    }
    if (!message.reasoning.has_value() && !message.content.has_value() &&
        message.tool_calls.empty()) {
      ++empty_replies_;
    }
    choice->set_finish_reason(state.end.finish_reason());
    if (state.end.has_stop_string()) choice->set_stop_string(state.end.stop_string());
    if (state.end.has_stop_token_id()) choice->set_stop_token_id(state.end.stop_token_id());
    MovePending(state, /*all=*/true, *choice->mutable_logprobs());
  }
  *response.mutable_usage() = usage_;
  *response.mutable_timings() = timings_;
  return response;
}

ParserCounters ChatSession::counters() const {
  ParserCounters sum;
  for (const ChoiceState& choice : choices_) Sum(choice.parser->counters(), sum);
  return sum;
}

}  // namespace tessera::parser

#include "services/parser/formats/output_machine.h"

#include <algorithm>

#include "services/parser/formats/tool_formats.h"

namespace tessera::parser {
namespace {

bool ParsesTools(const ParserOptions& options) {
  return options.tool_choice != ToolChoice::kNone && !options.tools.empty();
}

}  // namespace

OutputMachine::OutputMachine(const ParserOptions& options, CallIdSource* ids)
    : options_(options),
      format_(*FindReasoningFormat(options_.reasoning_format)),
      thinking_(!format_.open.empty() && (options_.enable_thinking || format_.always_thinks)),
      tools_(&options_.tools),
      channel_(&events_, &counters_,
               options_.force_nonempty_content || (!thinking_ && format_.off_forces_content)),
      calls_(&events_, &counters_, ids, options_.parallel_tool_calls) {
  if (ParsesTools(options_)) {
    syntax_ = MakeToolSyntax(options_.tool_format,
                             SyntaxContext{buffer_, calls_, counters_, end_, tools_});
  }
  if (!format_.close.empty()) triggers_.push_back(format_.close.front());
  if (syntax_ != nullptr) {
    for (const char c : syntax_->triggers()) {
      if (triggers_.find(c) == std::string::npos) triggers_.push_back(c);
    }
  }
  if (format_.open.empty()) state_ = State::kContent;
}

void OutputMachine::Push(std::string_view text, std::vector<ParserEvent>* events) {
  events_.SetTarget(events);
  counters_.invalid_utf8 += intake_.Append(text, &buffer_);
  Run();
}

void OutputMachine::Finish(EngineFinish finish, std::vector<ParserEvent>* events) {
  events_.SetTarget(events);
  counters_.invalid_utf8 += intake_.Finish(&buffer_);
  end_ = EndOfText{/*ended=*/true, /*cut=*/finish != EngineFinish::kStop};
  Run();
  channel_.Finish(state_ == State::kReasoning || state_ == State::kStart);
  events_.Add(EventKind::kFinish).finish_reason = ReasonFor(finish);
}

FinishReason OutputMachine::ReasonFor(EngineFinish finish) const {
  if (finish == EngineFinish::kLength) return FinishReason::kLength;
  if (finish == EngineFinish::kAbort) return FinishReason::kAborted;
  // As in the OpenAI API, a call that the client named is no choice of the model's.
  const bool chosen = calls_.returned() > 0 && options_.tool_choice != ToolChoice::kNamed;
  return chosen ? FinishReason::kToolCalls : FinishReason::kStop;
}

bool OutputMachine::in_reasoning() const {
  return state_ == State::kReasoning || (state_ == State::kStart && thinking_);
}

uint64_t OutputMachine::reasoning_end_offset() const {
  if (!thinking_) return 0;
  return reasoning_ended_ ? reasoning_end_ : decided_offset();
}

void OutputMachine::Run() {
  bool again = true;
  while (again) {
    switch (state_) {
      case State::kStart:
        again = StepStart();
        break;
      case State::kReasoning:
      case State::kContent:
        again = StepText();
        break;
      case State::kCall:
        again = StepCall();
        break;
    }
  }
}

bool OutputMachine::StepStart() {
  const uint64_t next = buffer_.SkipSpace(buffer_.begin());
  const size_t space = static_cast<size_t>(next - buffer_.begin());
  const Match match =
      space > kWhitespaceHeldBytesMax ? Match::kNo : MatchTag(buffer_.From(next), format_.open);
  if (match == Match::kPartial && !end_.ended) return false;
  if (match == Match::kFull) {
    buffer_.Consume(space + format_.open.size());
    state_ = State::kReasoning;  // with thinking off too: an explicit block is still reasoning
  } else {
    state_ = thinking_ ? State::kReasoning : State::kContent;
  }
  return true;
}

bool OutputMachine::StepText() {
  const std::string_view text = buffer_.Rest();
  if (text.empty()) return false;
  const size_t plain = std::min(
      triggers_.size() == 1 ? text.find(triggers_[0]) : text.find_first_of(triggers_), text.size());
  if (plain > 0) {
    TakeText(plain);
    return true;
  }
  bool more = false;
  if (TakeMarker(&more)) return true;
  const Probe probe = ProbeTools();
  switch (probe.kind) {
    case Probe::Kind::kOpen:
      if (state_ == State::kReasoning) {
        EndReasoning();
        ++counters_.implicit_reasoning_ends;
      }
      channel_.CallOpens();
      syntax_->Open();
      state_ = State::kCall;
      return true;
    case Probe::Kind::kDrop:
      // White space between the tags of a call is nobody's text.
      if (place_.right_after_call()) channel_.DropHeld();
      buffer_.Consume(probe.bytes);
      return true;
    case Probe::Kind::kMarkerText:
      TakeText(probe.bytes);
      return true;
    case Probe::Kind::kMore:
    case Probe::Kind::kMoreText:
      more = true;
      break;
    case Probe::Kind::kText:
      break;
  }
  if (more && !end_.ended) return false;
  if (probe.kind == Probe::Kind::kMore && end_.cut) {
    buffer_.Consume(text.size());  // the beginning of a call that never came
  } else {
    TakeText(1);
  }
  return true;
}

bool OutputMachine::TakeMarker(bool* more) {
  const std::string_view text = buffer_.Rest();
  if (!format_.close.empty()) {
    const Match match = MatchTag(text, format_.close);
    if (match == Match::kFull) {
      if (state_ == State::kReasoning) EndReasoning();
      state_ = State::kContent;
      buffer_.Consume(format_.close.size());
      return true;
    }
    *more = *more || match == Match::kPartial;
  }
  if (!format_.end_of_turn.empty()) {
    const Match match = MatchTag(text, format_.end_of_turn);
    if (match == Match::kFull) {
      buffer_.Consume(format_.end_of_turn.size());
      return true;
    }
    *more = *more || match == Match::kPartial;
  }
  return false;
}

Probe OutputMachine::ProbeTools() {
  if (syntax_ == nullptr || (options_.fences_are_text && place_.in_fence())) return {};
  return syntax_->ProbeText(TextPlace{.in_reasoning = state_ == State::kReasoning,
                                      .line_start = place_.at_line_start(),
                                      .channel_blank = place_.blank(),
                                      .right_after_call = place_.right_after_call()});
}

void OutputMachine::TakeText(size_t bytes) {
  const std::string_view text = buffer_.Rest().substr(0, bytes);
  place_.Feed(text);
  if (state_ == State::kReasoning) {
    channel_.Reasoning(text);
  } else {
    channel_.Content(text);
  }
  buffer_.Consume(bytes);
}

// Its end is where the marker or the call begins.
void OutputMachine::EndReasoning() {
  channel_.DropHeld();
  place_.Restart();
  reasoning_ended_ = true;
  reasoning_end_ = buffer_.begin();
}

bool OutputMachine::StepCall() {
  switch (syntax_->StepCall()) {
    case CallStep::kAgain:
      return true;
    case CallStep::kMore:
      return false;
    case CallStep::kClosed:
      break;
  }
  place_.AfterCall();
  state_ = State::kContent;
  return true;
}

}  // namespace tessera::parser

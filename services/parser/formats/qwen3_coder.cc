#include "services/parser/formats/qwen3_coder.h"

#include <algorithm>

#include "services/parser/formats/json_text.h"

namespace tessera::parser {
namespace {

constexpr std::string_view kCallOpen = "<tool_call>";
constexpr std::string_view kCallClose = "</tool_call>";
constexpr std::string_view kFunctionOpen = "<function=";
constexpr std::string_view kFunctionClose = "</function>";
constexpr std::string_view kParameterOpen = "<parameter=";
constexpr std::string_view kParameterClose = "</parameter>";
// Openers of a parameter in other dialects: data, but they nest.
constexpr std::string_view kParameterSpace = "<parameter ";
constexpr std::string_view kParameterPlain = "<parameter>";
constexpr std::string_view kEndOfTurn = "<|im_end|>";

Probe Marker(Probe::Kind kind, size_t bytes) { return Probe{kind, bytes}; }

// What is left of `text` without one newline at its end.
std::string_view WithoutNewline(std::string_view text) {
  if (!text.empty() && text.back() == '\n') {
    text.remove_suffix(1);
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  }
  return text;
}

}  // namespace

// ---- Between calls

Probe Qwen3CoderSyntax::ProbeText(const TextPlace& place) {
  const std::string_view text = context_.buffer.Rest();
  switch (MatchTag(text, kCallOpen)) {
    case Match::kFull:
      return ProbeWrapper(place);
    case Match::kPartial:
      return Marker(Probe::Kind::kMore, 0);
    case Match::kNo:
      break;
  }
  if (place.in_reasoning) return {};
  if (MatchTag(text, kFunctionOpen) != Match::kNo) return ProbeBareFunction(place);
  return ProbeCloser();
}

Probe Qwen3CoderSyntax::ProbeWrapper(const TextPlace& place) {
  TextBuffer& buffer = context_.buffer;
  const uint64_t inside = buffer.begin() + kCallOpen.size();
  const uint64_t next = buffer.SkipSpace(inside);
  if (!TooFar(inside, next)) {
    const std::string_view text = buffer.From(next);
    const Match function = MatchTag(text, kFunctionOpen);
    const Match close = place.in_reasoning ? Match::kNo : MatchTag(text, kCallClose);
    if (function == Match::kPartial || close == Match::kPartial) {
      return Marker(Probe::Kind::kMore, 0);
    }
    if (close == Match::kFull) {  // an empty wrapper
      return Marker(Probe::Kind::kDrop,
                    static_cast<size_t>(next - buffer.begin()) + kCallClose.size());
    }
    if (function == Match::kFull) {
      std::string_view name;
      open_name_begin_ = next + kFunctionOpen.size();
      open_wrapped_ = true;
      const Answer named = ReadName(open_name_begin_, &name, &open_name_end_);
      if (named == Answer::kMore) return Marker(Probe::Kind::kMore, 0);
      // Reasoning quotes samples; only a call that can be meant ends it.
      if (named == Answer::kYes && (!place.in_reasoning || context_.tools.Find(name) != nullptr)) {
        return Marker(Probe::Kind::kOpen, 0);
      }
    }
  }
  if (!place.in_reasoning) ++literals_open_;
  ++context_.counters.markers_as_text;
  return Marker(Probe::Kind::kMarkerText, kCallOpen.size());
}

// A call whose <tool_call> is missing. Prose names the tag too, so the place, the name and what
// follows have to be those of a call.
Probe Qwen3CoderSyntax::ProbeBareFunction(const TextPlace& place) {
  TextBuffer& buffer = context_.buffer;
  if (!place.line_start && !place.channel_blank && !place.right_after_call && literals_open_ == 0) {
    return {};
  }
  if (MatchTag(buffer.Rest(), kFunctionOpen) == Match::kPartial) {
    return Marker(Probe::Kind::kMore, 0);
  }
  open_wrapped_ = place.right_after_call && closer_due_ && !last_was_bare_;
  open_name_begin_ = buffer.begin() + kFunctionOpen.size();
  std::string_view name;
  Answer answer = ReadName(open_name_begin_, &name, &open_name_end_);
  // A further function of a wrapper that is still open is a call by its place alone.
  if (answer == Answer::kYes && !open_wrapped_) {
    if (context_.tools.Find(name) == nullptr) {
      answer = Answer::kNo;
    } else {
      answer = BodyFollows();
    }
  }
  if (answer == Answer::kMore) return Marker(Probe::Kind::kMore, 0);
  if (answer == Answer::kYes) return Marker(Probe::Kind::kOpen, 0);
  ++context_.counters.markers_as_text;
  return Marker(Probe::Kind::kMarkerText, kFunctionOpen.size());
}

// Are there the parameters or the end of a function behind the name of the opener? Unlike IsNext it
// leaves the question open at the end of the output: a cut drops the opener, an end of turn does
// not.
Qwen3CoderSyntax::Answer Qwen3CoderSyntax::BodyFollows() {
  TextBuffer& buffer = context_.buffer;
  const uint64_t behind = open_name_end_ + (buffer.From(open_name_end_).front() == '>' ? 1 : 0);
  const uint64_t next = buffer.SkipSpace(behind);
  if (TooFar(behind, next)) return Answer::kNo;
  const Match parameter = MatchTag(buffer.From(next), kParameterOpen);
  const Match close = MatchTag(buffer.From(next), kFunctionClose);
  if (parameter == Match::kFull || close == Match::kFull) return Answer::kYes;
  return parameter == Match::kPartial || close == Match::kPartial ? Answer::kMore : Answer::kNo;
}

Probe Qwen3CoderSyntax::ProbeCloser() {
  switch (MatchTag(context_.buffer.Rest(), kCallClose)) {
    case Match::kNo:
      return {};
    case Match::kPartial:
      return Marker(closer_due_ ? Probe::Kind::kMore : Probe::Kind::kMoreText, 0);
    case Match::kFull:
      break;
  }
  if (closer_due_) {  // each call has one, even with words in between
    closer_due_ = false;
    if (last_was_bare_ && literals_open_ > 0) --literals_open_;
    return Marker(Probe::Kind::kDrop, kCallClose.size());
  }
  if (literals_open_ > 0) --literals_open_;
  ++context_.counters.markers_as_text;
  return Marker(Probe::Kind::kMarkerText, kCallClose.size());
}

Qwen3CoderSyntax::Answer Qwen3CoderSyntax::ReadName(uint64_t at, std::string_view* name,
                                                    uint64_t* end) {
  TextBuffer& buffer = context_.buffer;
  *end = buffer.NameEnd(at);
  if (*end - at > kNameBytesMax) {
    ++context_.counters.limits_hit;
    return Answer::kNo;
  }
  if (*end == buffer.end()) return Answer::kMore;
  *name = Trim(buffer.From(at).substr(0, static_cast<size_t>(*end - at)));
  return name->empty() ? Answer::kNo : Answer::kYes;
}

void Qwen3CoderSyntax::Open() {
  TextBuffer& buffer = context_.buffer;
  const std::string_view name =
      Trim(buffer.From(open_name_begin_)
               .substr(0, static_cast<size_t>(open_name_end_ - open_name_begin_)));
  context_.calls.Begin(name);
  parameters_ = ParameterTypes(context_.tools.Find(name));
  const bool tag_closed = buffer.From(open_name_end_).front() != '<';
  buffer.Consume(static_cast<size_t>(open_name_end_ - buffer.begin()) + (tag_closed ? 1 : 0));
  wrapped_ = open_wrapped_;
  closer_due_ = false;
  state_ = State::kParameters;
  used_.clear();
  any_parameter_ = false;
  any_member_ = false;
  malformed_ = false;
}

// ---- Between parameters

CallStep Qwen3CoderSyntax::StepCall() {
  switch (state_) {
    case State::kParameters:
      return StepParameters();
    case State::kValueStart:
      return StepValueStart();
    case State::kValue:
      return StepValue();
  }
  return CallStep::kClosed;
}

CallStep Qwen3CoderSyntax::StepParameters() {
  TextBuffer& buffer = context_.buffer;
  // Words between tags mean nothing.
  buffer.Consume(std::min(buffer.Rest().find('<'), buffer.Rest().size()));
  const std::string_view text = buffer.Rest();
  bool partial = false;
  const auto begins = [&](std::string_view tag) {
    const Match match = MatchTag(text, tag);
    partial = partial || match == Match::kPartial;
    return match == Match::kFull;
  };
  if (begins(kParameterOpen)) return StepParameterName();
  if (begins(kCallOpen)) return StepNextCall();
  if (begins(kFunctionClose)) {
    buffer.Consume(kFunctionClose.size());
    closer_due_ = true;
    return CloseCall(malformed_);
  }
  if (begins(kCallClose)) {
    buffer.Consume(kCallClose.size());
    return CloseCall(/*malformed=*/true);
  }
  if (begins(kParameterClose)) {  // a doubled one
    buffer.Consume(kParameterClose.size());
    return CallStep::kAgain;
  }
  if (!partial) {
    buffer.Consume(1);
    return CallStep::kAgain;
  }
  return context_.end.ended ? EndCutCall() : CallStep::kMore;
}

// At a <tool_call> inside an open call.
CallStep Qwen3CoderSyntax::StepNextCall() {
  TextBuffer& buffer = context_.buffer;
  // Behind a parameter it can only be the next call's.
  if (any_parameter_) return CloseCall(/*malformed=*/true);
  const Answer answer =
      IsNext(buffer.begin() + kCallOpen.size(), {kFunctionOpen}, /*or_end=*/false);
  if (answer == Answer::kMore) return CallStep::kMore;
  if (answer == Answer::kYes) return CloseCall(/*malformed=*/true);
  buffer.Consume(kCallOpen.size());
  return CallStep::kAgain;
}

CallStep Qwen3CoderSyntax::StepParameterName() {
  TextBuffer& buffer = context_.buffer;
  const uint64_t begin = buffer.begin() + kParameterOpen.size();
  const uint64_t end = buffer.NameEnd(begin);
  if (end - begin > kNameBytesMax) {
    ++context_.counters.limits_hit;
    malformed_ = true;
    buffer.Consume(kParameterOpen.size());
    return CallStep::kAgain;
  }
  if (end == buffer.end()) {
    if (!context_.end.ended) return CallStep::kMore;
    ++context_.counters.parameters_dropped;
    return EndCutCall();
  }
  const std::string_view written = buffer.From(begin);
  const std::string name(Trim(written.substr(0, static_cast<size_t>(end - begin))));
  const char terminator = buffer.From(end).front();
  const size_t taken = static_cast<size_t>(end - buffer.begin());
  buffer.Consume(taken + (terminator == '<' ? 0 : 1));
  any_parameter_ = true;
  // A name that a newline ended has had the newline that begins a value.
  state_ = terminator == '>' ? State::kValueStart : State::kValue;
  if (terminator != '>') malformed_ = true;
  BeginValue(name);
  last_char_ = terminator;
  return CallStep::kAgain;
}

CallStep Qwen3CoderSyntax::CloseCall(bool malformed) {
  context_.calls.Arguments(any_member_ ? "}" : "{}");
  context_.calls.End(malformed);
  last_was_bare_ = !wrapped_;
  return CallStep::kClosed;
}

// The output has ended between the parameters of the open call.
CallStep Qwen3CoderSyntax::EndCutCall() {
  context_.buffer.Consume(context_.buffer.Rest().size());
  return CloseCall(/*malformed=*/true);
}

// ---- Values

void Qwen3CoderSyntax::BeginValue(std::string_view name) {
  name_ = name;
  raw_.clear();
  newline_held_.clear();
  nested_parameters_ = nested_functions_ = nested_calls_ = 0;
  if (!used_.insert(name_).second) {  // the first has been sent
    mode_ = Mode::kDiscard;
    malformed_ = true;
    ++context_.counters.parameters_dropped;
    return;
  }
  types_ = parameters_.Of(name_);
  if (types_.IsOnly(TypeSet::kString)) {
    mode_ = Mode::kStream;
    SendKey();
    context_.calls.Arguments("\"");
  } else if (types_.Has(TypeSet::kString)) {
    mode_ = Mode::kUndecided;
    guess_ = StringGuess(types_);
  } else {
    mode_ = Mode::kHold;
  }
}

void Qwen3CoderSyntax::SendKey() {
  context_.calls.Arguments(any_member_ ? ", \"" : "{\"");
  context_.calls.ArgumentsEscaped(name_);
  context_.calls.Arguments("\": ");
  any_member_ = true;
}

// Takes the one newline off the value's start.
CallStep Qwen3CoderSyntax::StepValueStart() {
  TextBuffer& buffer = context_.buffer;
  const std::string_view text = buffer.Rest();
  if ((text.empty() || text == "\r") && !context_.end.ended) return CallStep::kMore;
  const size_t newline = text.substr(0, 1) == "\n" ? 1 : text.substr(0, 2) == "\r\n" ? 2 : 0;
  if (newline > 0) last_char_ = '\n';
  buffer.Consume(newline);
  state_ = State::kValue;
  return CallStep::kAgain;
}

CallStep Qwen3CoderSyntax::StepValue() {
  const std::string_view text = context_.buffer.Rest();
  const size_t plain = std::min(text.find('<'), text.size());
  if (plain > 0) return TakeData(plain);
  if (!text.empty()) return StepValueTag();
  return context_.end.ended ? EndOfValue() : CallStep::kMore;
}

CallStep Qwen3CoderSyntax::TakeData(size_t bytes) {
  ValueBytes(context_.buffer.Rest().substr(0, bytes));
  context_.buffer.Consume(bytes);
  return CallStep::kAgain;
}

// The output has ended inside the value. An end of turn closes what is open; after a cut a string
// keeps what is there, but 12 could have become 123.
CallStep Qwen3CoderSyntax::EndOfValue() {
  if (context_.end.cut && (mode_ == Mode::kHold || mode_ == Mode::kUndecided)) {
    ++context_.counters.parameters_dropped;
  } else {
    CloseValue();
  }
  return EndCutCall();
}

// At a '<' in the value. Every tag that may close it is data unless what follows fits; an opener
// that is data makes as many closers of its kind data as well, so that a whole sample stays.
CallStep Qwen3CoderSyntax::StepValueTag() {
  TextBuffer& buffer = context_.buffer;
  const std::string_view text = buffer.Rest();
  struct Tag {
    std::string_view text;
    bool opens;
    uint64_t* nested;
  };
  const Tag tags[] = {
      {kParameterClose, false, &nested_parameters_}, {kFunctionClose, false, &nested_functions_},
      {kCallClose, false, &nested_calls_},           {kParameterOpen, true, &nested_parameters_},
      {kParameterSpace, true, &nested_parameters_},  {kParameterPlain, true, &nested_parameters_},
      {kFunctionOpen, true, &nested_functions_},     {kCallOpen, true, &nested_calls_},
  };
  bool partial = false;
  for (const Tag& tag : tags) {
    const Match match = MatchTag(text, tag.text);
    partial = partial || match == Match::kPartial;
    if (match != Match::kFull) continue;
    const uint64_t after = buffer.begin() + tag.text.size();
    Answer closes = Answer::kNo;
    if (tag.text == kParameterClose) closes = ParameterCloses(after);
    if (tag.text == kFunctionClose) closes = FunctionCloses(after);
    if (tag.text == kCallClose) closes = CallCloses(after);
    if (tag.text == kParameterOpen) closes = NextParameterCloses();
    if (closes == Answer::kMore) return CallStep::kMore;
    if (closes == Answer::kYes) {
      CloseValue();
      state_ = State::kParameters;
      if (tag.text == kParameterClose) {
        buffer.Consume(kParameterClose.size());
      } else {
        malformed_ = true;  // its own closer is missing; this tag is the next state's
      }
      return CallStep::kAgain;
    }
    if (tag.opens) {
      ++*tag.nested;
    } else if (*tag.nested > 0) {
      --*tag.nested;
    }
    return TakeData(tag.text.size());
  }
  if (!partial) return TakeData(1);
  if (!context_.end.ended) return CallStep::kMore;
  // Half a tag at a cut is more likely the value's end than its text; a lone '<' is not.
  if (context_.end.cut && text.size() > 1) buffer.Consume(text.size());
  return buffer.Rest().empty() ? CallStep::kAgain : TakeData(1);
}

Qwen3CoderSyntax::Answer Qwen3CoderSyntax::ParameterCloses(uint64_t after) {
  if (nested_parameters_ > 0) return IsFullEnd(after, /*function_closed=*/false);
  return IsNext(after, {kParameterOpen, kParameterClose, kFunctionClose, kCallClose, kCallOpen},
                /*or_end=*/true);
}

Qwen3CoderSyntax::Answer Qwen3CoderSyntax::FunctionCloses(uint64_t after) {
  if (nested_functions_ > 0) return IsFullEnd(after, /*function_closed=*/true);
  return IsNext(after, {kCallClose, kCallOpen, kFunctionOpen}, /*or_end=*/true);
}

Qwen3CoderSyntax::Answer Qwen3CoderSyntax::CallCloses(uint64_t after) {
  if (nested_calls_ > 0) return Answer::kNo;
  return IsNext(after, {kCallOpen}, /*or_end=*/true);
}

Qwen3CoderSyntax::Answer Qwen3CoderSyntax::NextParameterCloses() {
  if (last_char_ != '\n' || nested_parameters_ + nested_functions_ + nested_calls_ > 0) {
    return Answer::kNo;
  }
  TextBuffer& buffer = context_.buffer;
  std::string_view name;
  uint64_t end = 0;
  const Answer named = ReadName(buffer.begin() + kParameterOpen.size(), &name, &end);
  if (named == Answer::kMore) return context_.end.ended ? Answer::kNo : Answer::kMore;
  const bool closes = named == Answer::kYes && buffer.From(end).front() == '>' &&
                      parameters_.Declares(name) && used_.find(name) == used_.end();
  return closes ? Answer::kYes : Answer::kNo;
}

Qwen3CoderSyntax::Answer Qwen3CoderSyntax::IsFullEnd(uint64_t at, bool function_closed) {
  TextBuffer& buffer = context_.buffer;
  if (!function_closed) {
    const uint64_t behind = buffer.SkipSpaceAndTags(at, kParameterClose);
    if (TooFar(at, behind)) return Answer::kNo;
    if (!context_.end.ended && MatchTag(buffer.From(behind), kParameterClose) == Match::kPartial) {
      return Answer::kMore;
    }
    const Answer function = IsNext(behind, {kFunctionClose}, /*or_end=*/false, &at);
    if (function != Answer::kYes) return function;
  }
  const Answer call = IsNext(at, {kCallClose}, /*or_end=*/false, &at);
  if (call != Answer::kYes) return call;
  return IsNext(at, {kCallOpen}, /*or_end=*/true);
}

Qwen3CoderSyntax::Answer Qwen3CoderSyntax::IsNext(uint64_t at,
                                                  std::initializer_list<std::string_view> tags,
                                                  bool or_end, uint64_t* after) {
  TextBuffer& buffer = context_.buffer;
  const uint64_t next = buffer.SkipSpace(at);
  if (TooFar(at, next)) {
    ++context_.counters.limits_hit;
    return Answer::kNo;
  }
  const std::string_view text = buffer.From(next);
  bool partial = false;
  for (const std::string_view tag : tags) {
    const Match match = MatchTag(text, tag);
    if (match == Match::kFull) {
      if (after != nullptr) *after = next + tag.size();
      return Answer::kYes;
    }
    partial = partial || match == Match::kPartial;
  }
  if (or_end) {  // the end of turn, if it is still in the text, is the end
    const Match match = MatchTag(text, kEndOfTurn);
    if (match == Match::kFull) return Answer::kYes;
    partial = partial || match == Match::kPartial;
  }
  if (!partial) return Answer::kNo;
  if (!context_.end.ended) return Answer::kMore;
  // After a cut, half of a tag that fits is taken for the whole.
  return or_end && (text.empty() || context_.end.cut) ? Answer::kYes : Answer::kNo;
}

void Qwen3CoderSyntax::ValueBytes(std::string_view text) {
  last_char_ = text.back();
  switch (mode_) {
    case Mode::kDiscard:
      return;
    case Mode::kStream:
      StreamBytes(text);
      return;
    case Mode::kUndecided:
    case Mode::kHold:
      raw_.append(text);
      break;
  }
  const bool too_long = raw_.size() > kTypedValueBytesMax;
  if (too_long) {
    ++context_.counters.limits_hit;
    ++context_.counters.raw_strings;
  }
  if (too_long || (mode_ == Mode::kUndecided && guess_.Feed(text))) {
    mode_ = Mode::kStream;
    SendKey();
    context_.calls.Arguments("\"");
    StreamBytes(raw_);
    raw_.clear();
  }
}

void Qwen3CoderSyntax::StreamBytes(std::string_view text) {
  if (newline_held_ == "\r" && text.substr(0, 1) == "\n") {
    newline_held_ = "\r\n";
    text.remove_prefix(1);
  }
  if (text.empty()) return;
  context_.calls.ArgumentsEscaped(newline_held_);
  std::string_view rest = WithoutNewline(text);
  if (rest.size() == text.size() && text.back() == '\r') rest.remove_suffix(1);
  context_.calls.ArgumentsEscaped(rest);
  newline_held_ = text.substr(rest.size());
}

void Qwen3CoderSyntax::CloseValue() {
  if (mode_ == Mode::kDiscard) return;
  if (mode_ == Mode::kStream) {
    if (newline_held_ == "\r") context_.calls.ArgumentsEscaped(newline_held_);
    context_.calls.Arguments("\"");
    return;
  }
  const TypedValue value = TypeValue(types_, WithoutNewline(raw_));
  if (value.raw_string) ++context_.counters.raw_strings;
  SendKey();
  context_.calls.Arguments(value.json);
}

}  // namespace tessera::parser

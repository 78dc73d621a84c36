#include "services/parser/formats/json_call.h"

#include <optional>

#include "services/parser/formats/json_text.h"

namespace tessera::parser {
namespace {

// The text of a JSON string with its escapes undone.
std::optional<std::string> Unquote(std::string_view json) {
  const auto parsed = nlohmann::ordered_json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_string()) return std::nullopt;
  return parsed.get<std::string>();
}

}  // namespace

JsonCallHeader::Answer JsonCallHeader::Read(const TextBuffer& buffer, uint64_t at,
                                            bool needs_arguments) {
  if (begin_ != at) {
    *this = JsonCallHeader();
    begin_ = at_ = at;
  }
  while (at_ < buffer.end()) {
    if (at_ - begin_ > kHeaderBytesMax) return Answer::kNo;
    const size_t left = kHeaderBytesMax + 1 - static_cast<size_t>(at_ - begin_);
    const std::string_view rest = buffer.From(at_).substr(0, left);
    size_t taken = 1;
    bool value_ended = false;
    Answer answer = Answer::kMore;
    switch (phase_) {
      case Phase::kKey:
      case Phase::kValue: {
        taken = 0;
        const JsonProgress progress = skipper_.Feed(rest, &taken);
        at_ += taken;
        if (progress == JsonProgress::kError) return Answer::kNo;
        if (progress == JsonProgress::kMore) continue;
        value_ended = true;
        break;
      }
      default:
        answer = FeedStructure(rest.front(), needs_arguments);
        if (phase_ != Phase::kKey && phase_ != Phase::kValue) ++at_;
        break;
    }
    if (value_ended) answer = EndPart(buffer);
    if (answer != Answer::kMore) return answer;
  }
  return at_ - begin_ > kHeaderBytesMax ? Answer::kNo : Answer::kMore;
}

JsonCallHeader::Answer JsonCallHeader::FeedStructure(char c, bool needs_arguments) {
  if (IsSpace(c)) return Answer::kMore;
  switch (phase_) {
    case Phase::kOpen:
      phase_ = Phase::kFirstKey;
      return c == '{' ? Answer::kMore : Answer::kNo;
    case Phase::kFirstKey:
    case Phase::kNextKey:
      if (c != '"') return Answer::kNo;
      phase_ = Phase::kKey;
      part_begin_ = at_;
      skipper_ = JsonSkipper();
      return Answer::kMore;
    case Phase::kColon:
      phase_ = Phase::kBegin;
      return c == ':' ? Answer::kMore : Answer::kNo;
    case Phase::kBegin:
      return BeginValue(c);
    case Phase::kAfter:
      if (c == ',') {
        phase_ = Phase::kNextKey;
        return Answer::kMore;
      }
      if (c != '}' || name_.empty() || (needs_arguments && !has_arguments_)) return Answer::kNo;
      closed_ = true;
      return Answer::kYes;
    default:
      return Answer::kNo;
  }
}

JsonCallHeader::Answer JsonCallHeader::BeginValue(char c) {
  part_begin_ = at_;
  skipper_ = JsonSkipper();
  phase_ = Phase::kValue;
  if (key_ == "name") return c == '"' ? Answer::kMore : Answer::kNo;
  if ((key_ != "arguments" && key_ != "parameters") || has_arguments_) return Answer::kMore;
  has_arguments_ = true;
  arguments_begin_ = at_;
  arguments_ = c == '{' ? Arguments::kObject : c == '"' ? Arguments::kString : Arguments::kNone;
  if (arguments_ == Arguments::kNone && c != 'n') return Answer::kNo;
  if (arguments_ == Arguments::kNone || name_.empty()) return Answer::kMore;
  arguments_ = c == '{' ? Arguments::kOpenObject : Arguments::kOpenString;
  return Answer::kYes;
}

// At the end of a key or a value.
JsonCallHeader::Answer JsonCallHeader::EndPart(const TextBuffer& buffer) {
  const std::string_view part =
      buffer.From(part_begin_).substr(0, static_cast<size_t>(at_ - part_begin_));
  if (phase_ == Phase::kKey) {
    phase_ = Phase::kColon;
    std::optional<std::string> key = Unquote(part);
    if (!key.has_value()) return Answer::kNo;
    key_ = *std::move(key);
    return Answer::kMore;
  }
  phase_ = Phase::kAfter;
  if (key_ == "name" && name_.empty()) {
    const std::optional<std::string> name = Unquote(part);
    if (!name.has_value()) return Answer::kNo;
    name_ = Trim(*name);
    if (name_.empty() || name_.size() > kNameBytesMax) return Answer::kNo;
  } else if (has_arguments_ && arguments_begin_ == part_begin_) {
    arguments_end_ = at_;
  }
  return !name_.empty() && has_arguments_ ? Answer::kYes : Answer::kMore;
}

void JsonCallBody::Begin(std::string_view name) {
  context_.calls.Begin(name);
  state_ = State::kArguments;
  tail_follows_ = true;
  malformed_ = false;
  stream_ = JsonObjectStream();
  tail_ = JsonSkipper(/*depth=*/1);
  string_ = JsonSkipper();
  raw_.clear();
}

void JsonCallBody::OpenArguments(std::string_view name) {
  Begin(name);
  tail_follows_ = false;
}

void JsonCallBody::Open(const JsonCallHeader& header) {
  TextBuffer& buffer = context_.buffer;
  Begin(header.name());
  if (header.arguments() == JsonCallHeader::Arguments::kOpenObject ||
      header.arguments() == JsonCallHeader::Arguments::kOpenString) {
    if (header.arguments() == JsonCallHeader::Arguments::kOpenString) state_ = State::kString;
    buffer.Consume(static_cast<size_t>(header.arguments_begin() - buffer.begin()));
    return;
  }
  const auto arguments = [&] {  // there may be none, and then their place means nothing
    return buffer.From(header.arguments_begin())
        .substr(0, static_cast<size_t>(header.arguments_end() - header.arguments_begin()));
  };
  switch (header.arguments()) {
    case JsonCallHeader::Arguments::kObject: {
      size_t consumed = 0;
      out_.clear();
      if (stream_.Feed(arguments(), &consumed, &out_) != JsonProgress::kDone) stream_.Close(&out_);
      context_.calls.Arguments(out_);
      break;
    }
    case JsonCallHeader::Arguments::kString:
      SendString(arguments());
      break;
    default:
      context_.calls.Arguments("{}");
      break;
  }
  buffer.Consume(static_cast<size_t>(header.end() - buffer.begin()));
  state_ = header.closed() ? State::kClosed : State::kTail;
}

// Arguments as a string: the object it holds, or else nothing is lost.
void JsonCallBody::SendString(std::string_view json) {
  const std::optional<std::string> text = Unquote(json);
  const std::optional<JsonValue> value =
      text.has_value() ? ReadJson(*text) : std::optional<JsonValue>();
  if (value.has_value() && value->kind == JsonKind::kObject) {
    context_.calls.Arguments(value->text);
    return;
  }
  if (text.has_value() && Trim(*text).empty()) {
    context_.calls.Arguments("{}");
    return;
  }
  malformed_ = true;
  ++context_.counters.raw_strings;
  context_.calls.Arguments("{\"arguments\": \"");
  context_.calls.ArgumentsEscaped(text.has_value() ? *text : std::string(json));
  context_.calls.Arguments("\"}");
}

CallStep JsonCallBody::Step() {
  TextBuffer& buffer = context_.buffer;
  if (state_ == State::kClosed) return Close(/*malformed=*/false);
  if (state_ == State::kArguments) return StepArguments();
  if (state_ == State::kString) return StepString();
  size_t consumed = 0;
  const JsonProgress progress = tail_.Feed(buffer.Rest(), &consumed);
  buffer.Consume(consumed);
  if (progress == JsonProgress::kDone) return Close(/*malformed=*/false);
  if (progress == JsonProgress::kError) return Close(/*malformed=*/true);
  return context_.end.ended ? Close(/*malformed=*/true) : CallStep::kMore;
}

CallStep JsonCallBody::StepString() {
  TextBuffer& buffer = context_.buffer;
  size_t consumed = 0;
  const JsonProgress progress = string_.Feed(buffer.Rest(), &consumed);
  raw_.append(buffer.Rest().substr(0, consumed));
  buffer.Consume(consumed);
  const bool too_long = raw_.size() > kTypedValueBytesMax;
  if (too_long) ++context_.counters.limits_hit;
  if (progress == JsonProgress::kMore && !context_.end.ended && !too_long) return CallStep::kMore;
  SendString(raw_);
  raw_.clear();
  if (progress != JsonProgress::kDone) return Close(/*malformed=*/true);
  state_ = State::kTail;
  return CallStep::kAgain;
}

CallStep JsonCallBody::StepArguments() {
  TextBuffer& buffer = context_.buffer;
  size_t consumed = 0;
  out_.clear();
  const JsonProgress progress = stream_.Feed(buffer.Rest(), &consumed, &out_);
  const bool cut = progress == JsonProgress::kMore && context_.end.ended;
  const bool broken = progress == JsonProgress::kError;
  if (cut || broken) stream_.Close(&out_);
  buffer.Consume(consumed);
  context_.calls.Arguments(out_);
  if (cut || broken) return Close(/*malformed=*/true);
  if (progress == JsonProgress::kMore) return CallStep::kMore;
  if (!tail_follows_) return Close(/*malformed=*/false);
  state_ = State::kTail;
  return CallStep::kAgain;
}

CallStep JsonCallBody::Close(bool malformed) {
  context_.calls.End(malformed || malformed_ || stream_.repaired());
  state_ = State::kClosed;
  return CallStep::kClosed;
}

}  // namespace tessera::parser

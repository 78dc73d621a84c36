#include "services/parser/formats/mistral.h"

#include <algorithm>

namespace tessera::parser {
namespace {

constexpr std::string_view kMarker = "[TOOL_CALLS]";
constexpr std::string_view kCallId = "[CALL_ID]";
constexpr std::string_view kArgs = "[ARGS]";

bool IsNameByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '-' || c == '.' || c == ':' || c == '/';
}

size_t NameBytes(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsNameByte) - text.begin());
}

}  // namespace

Probe MistralSyntax::ProbeText(const TextPlace& place) {
  TextBuffer& buffer = context_.buffer;
  const char trigger = buffer.Rest().front();
  if (trigger == '[') {
    const Match marker = MatchTag(buffer.Rest(), kMarker);
    if (marker == Match::kNo) return {};
    if (marker == Match::kPartial) return {Probe::Kind::kMore};
    const uint64_t inside = buffer.begin() + kMarker.size();
    const uint64_t next = buffer.SkipSpace(inside);
    Answer answer = Answer::kNo;
    if (next - inside <= kLookaheadBytesMax) answer = ReadMarked(next);
    if (answer == Answer::kMore) return {Probe::Kind::kMore};
    const std::string& name = open_named_ ? open_name_ : header_.name();
    if (answer == Answer::kYes && (!place.in_reasoning || context_.tools.Find(name) != nullptr)) {
      return {Probe::Kind::kOpen};
    }
    ++context_.counters.markers_as_text;
    return {Probe::Kind::kMarkerText, kMarker.size()};
  }
  if (place.in_reasoning || !in_array_ || !place.right_after_call) return {};
  if (trigger == ']') {
    in_array_ = false;
    return {Probe::Kind::kDrop, 1};
  }
  open_array_ = true;
  open_named_ = false;
  const uint64_t next = buffer.SkipSpace(buffer.begin() + 1);
  if (next - buffer.begin() > kLookaheadBytesMax) return {};
  switch (ReadJson(next)) {
    case Answer::kYes:
      return {Probe::Kind::kOpen};
    case Answer::kMore:
      return {Probe::Kind::kMore};
    case Answer::kNo:
      break;
  }
  return {};
}

// What stands behind the marker.
MistralSyntax::Answer MistralSyntax::ReadMarked(uint64_t at) {
  TextBuffer& buffer = context_.buffer;
  const std::string_view text = buffer.From(at);
  open_array_ = false;
  open_named_ = false;
  if (text.empty()) return Answer::kMore;
  if (text.front() == '{') return ReadJson(at);
  if (text.front() == '[') {
    open_array_ = true;
    const uint64_t next = buffer.SkipSpace(at + 1);
    if (next - at > kLookaheadBytesMax) return Answer::kNo;
    return ReadJson(next);
  }
  return ReadNamed(at);
}

MistralSyntax::Answer MistralSyntax::ReadJson(uint64_t at) {
  switch (header_.Read(context_.buffer, at, /*needs_arguments=*/false)) {
    case JsonCallHeader::Answer::kYes:
      return Answer::kYes;
    case JsonCallHeader::Answer::kMore:
      return Answer::kMore;
    case JsonCallHeader::Answer::kNo:
      break;
  }
  return Answer::kNo;
}

// NAME, then maybe [CALL_ID] and an id, then maybe [ARGS], then the arguments.
MistralSyntax::Answer MistralSyntax::ReadNamed(uint64_t at) {
  TextBuffer& buffer = context_.buffer;
  std::string_view text = buffer.From(at);
  const size_t name = NameBytes(text.substr(0, kNameBytesMax + 1));
  if (name == 0 || name > kNameBytesMax) return Answer::kNo;
  open_named_ = true;
  open_name_ = text.substr(0, name);
  text.remove_prefix(name);
  uint64_t next = at + name;
  const auto take = [&](std::string_view tag) {
    const Match match = MatchTag(text, tag);
    if (match == Match::kFull) {
      text.remove_prefix(tag.size());
      next += tag.size();
    }
    return match;
  };
  const Match id = take(kCallId);
  if (id == Match::kPartial) return Answer::kMore;
  if (id == Match::kFull) {
    const size_t bytes = NameBytes(text.substr(0, kNameBytesMax + 1));
    if (bytes > kNameBytesMax) return Answer::kNo;
    text.remove_prefix(bytes);
    next += bytes;
  }
  if (take(kArgs) == Match::kPartial) return Answer::kMore;
  open_at_ = buffer.SkipSpace(next);
  if (open_at_ - next > kLookaheadBytesMax) return Answer::kNo;
  if (open_at_ == buffer.end()) return Answer::kMore;
  return buffer.From(open_at_).front() == '{' ? Answer::kYes : Answer::kNo;
}

void MistralSyntax::Open() {
  in_array_ = open_array_;
  if (!open_named_) {
    body_.Open(header_);
    return;
  }
  context_.buffer.Consume(static_cast<size_t>(open_at_ - context_.buffer.begin()));
  body_.OpenArguments(open_name_);
}

}  // namespace tessera::parser

#include "services/parser/formats/llama3_json.h"

namespace tessera::parser {
namespace {

constexpr std::string_view kPythonTag = "<|python_tag|>";
constexpr std::string_view kEnds[] = {"<|eom_id|>", "<|eot_id|>"};

}  // namespace

Probe Llama3JsonSyntax::ProbeText(const TextPlace& place) {
  TextBuffer& buffer = context_.buffer;
  const std::string_view text = buffer.Rest();
  if (text.front() == '<') {
    for (const std::string_view end : kEnds) {
      const Match match = MatchTag(text, end);
      if (match == Match::kFull) return {Probe::Kind::kDrop, end.size()};
      if (match == Match::kPartial) return {Probe::Kind::kMoreText};
    }
    const Match tag = MatchTag(text, kPythonTag);
    if (tag == Match::kNo) return {};
    if (tag == Match::kPartial) return {Probe::Kind::kMore};
    return ProbeJson(buffer.begin() + kPythonTag.size(), /*declared_only=*/place.in_reasoning,
                     {Probe::Kind::kMarkerText, kPythonTag.size()});
  }
  if (place.in_reasoning) return {};
  if (text.front() == '{') {
    if (!place.channel_blank && !place.right_after_call) return {};
    return ProbeJson(buffer.begin(), /*declared_only=*/true, {});
  }
  if (!place.right_after_call) return {};
  return ProbeJson(buffer.begin() + 1, /*declared_only=*/true, {});
}

Probe Llama3JsonSyntax::ProbeJson(uint64_t inside, bool declared_only, const Probe& otherwise) {
  TextBuffer& buffer = context_.buffer;
  const uint64_t next = buffer.SkipSpace(inside);
  if (next - inside <= kLookaheadBytesMax) {
    // Bare JSON may be the answer itself: cut, it is text.
    const Probe more{declared_only ? Probe::Kind::kMoreText : Probe::Kind::kMore};
    if (next == buffer.end()) return more;
    const auto call = header_.Read(buffer, next, /*needs_arguments=*/declared_only);
    if (call == JsonCallHeader::Answer::kMore) return more;
    if (call == JsonCallHeader::Answer::kYes &&
        (!declared_only || context_.tools.Find(header_.name()) != nullptr)) {
      return {Probe::Kind::kOpen};
    }
  }
  if (otherwise.kind == Probe::Kind::kMarkerText) ++context_.counters.markers_as_text;
  return otherwise;
}

}  // namespace tessera::parser

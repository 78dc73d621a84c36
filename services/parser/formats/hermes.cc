#include "services/parser/formats/hermes.h"

namespace tessera::parser {
namespace {

constexpr std::string_view kOpen = "<tool_call>";
constexpr std::string_view kClose = "</tool_call>";

}  // namespace

Probe HermesSyntax::ProbeText(const TextPlace& place) {
  TextBuffer& buffer = context_.buffer;
  const std::string_view text = buffer.Rest();
  const Match close = place.in_reasoning ? Match::kNo : MatchTag(text, kClose);
  const Match open = MatchTag(text, kOpen);
  if (open == Match::kPartial) return {Probe::Kind::kMore};
  if (close == Match::kPartial) return {closer_due_ ? Probe::Kind::kMore : Probe::Kind::kMoreText};
  if (close == Match::kFull) {
    const bool due = closer_due_;
    closer_due_ = false;
    if (!due) ++context_.counters.markers_as_text;
    return {due ? Probe::Kind::kDrop : Probe::Kind::kMarkerText, kClose.size()};
  }
  if (open == Match::kNo) return {};
  const uint64_t inside = buffer.begin() + kOpen.size();
  const uint64_t next = buffer.SkipSpace(inside);
  if (next - inside <= kLookaheadBytesMax) {
    const std::string_view body = buffer.From(next);
    if (body.empty()) return {Probe::Kind::kMore};
    const Match empty = place.in_reasoning ? Match::kNo : MatchTag(body, kClose);
    if (empty == Match::kPartial) return {Probe::Kind::kMore};
    if (empty == Match::kFull) {
      return {Probe::Kind::kDrop, static_cast<size_t>(next - buffer.begin()) + kClose.size()};
    }
    const auto call = header_.Read(buffer, next, /*needs_arguments=*/false);
    if (call == JsonCallHeader::Answer::kMore) return {Probe::Kind::kMore};
    if (call == JsonCallHeader::Answer::kYes &&
        (!place.in_reasoning || context_.tools.Find(header_.name()) != nullptr)) {
      return {Probe::Kind::kOpen};
    }
  }
  ++context_.counters.markers_as_text;
  return {Probe::Kind::kMarkerText, kOpen.size()};
}

void HermesSyntax::Open() {
  closer_due_ = true;
  body_.Open(header_);
}

}  // namespace tessera::parser

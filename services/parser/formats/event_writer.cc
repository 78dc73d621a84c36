#include "services/parser/formats/event_writer.h"

#include "services/parser/formats/json_text.h"
#include "services/parser/formats/text_buffer.h"

namespace tessera::parser {

void EventList::Text(EventKind kind, std::string_view text, int call_index) {
  if (text.empty()) return;
  if (target_->size() > first_) {
    ParserEvent& last = target_->back();
    if (last.kind == kind && last.call_index == call_index) {
      last.text.append(text);
      return;
    }
  }
  ParserEvent& event = Add(kind);
  event.text = text;
  event.call_index = call_index;
}

ParserEvent& EventList::Add(EventKind kind) {
  ParserEvent& event = target_->emplace_back();
  event.kind = kind;
  return event;
}

void ChannelWriter::Send(EventKind kind, std::string_view text) {
  events_.Text(kind, text);
  if (kind == EventKind::kContent || text.empty()) return;
  any_reasoning_ = true;
  if (!repeat_reasoning_ || reasoning_.size() > kPromotedBytesMax) return;
  reasoning_.append(text);
  if (reasoning_.size() > kPromotedBytesMax) ++counters_.limits_hit;
}

void ChannelWriter::Hold(EventKind kind, std::string_view text) {
  size_t solid = text.size();  // up to the trailing white space
  while (solid > 0 && IsSpace(text[solid - 1])) --solid;
  if (solid > 0) {
    Send(kind, held_);
    held_.clear();
    Send(kind, text.substr(0, solid));
    if (kind == EventKind::kContent) any_content_ = true;
  }
  held_.append(text.substr(solid));
  if (held_.size() <= kWhitespaceHeldBytesMax) return;
  // An endless run of white space flows through, as far behind as may be held.
  const size_t excess = held_.size() - kWhitespaceHeldBytesMax;
  Send(kind, std::string_view(held_).substr(0, excess));
  held_.erase(0, excess);
  if (kind == EventKind::kContent) any_content_ = true;
}

void ChannelWriter::Reasoning(std::string_view text) { Hold(EventKind::kReasoning, text); }

void ChannelWriter::Content(std::string_view text) { Hold(EventKind::kContent, text); }

void ChannelWriter::CallOpens() {
  held_.clear();
  any_call_ = true;
}

void ChannelWriter::Finish(bool in_reasoning) {
  if (in_reasoning) held_.clear();
  if (any_call_) return;
  if (repeat_reasoning_ && any_reasoning_ && !any_content_ &&
      reasoning_.size() <= kPromotedBytesMax) {
    ParserEvent& event = events_.Add(EventKind::kContent);
    event.text = reasoning_;
    event.promoted = true;
    ++counters_.promoted_replies;
    return;
  }
  Send(EventKind::kContent, held_);
}

void CallWriter::Begin(std::string_view name) {
  open_ = true;
  dropping_ = (!parallel_ && returned_ > 0) || static_cast<size_t>(returned_) >= kToolCallsMax;
  if (dropping_) {
    ++counters_.calls_dropped;
    if (parallel_) ++counters_.limits_hit;
    return;
  }
  ParserEvent& event = events_.Add(EventKind::kToolCallBegin);
  event.call_index = returned_++;
  event.id = ids_.NextCallId();
  event.name = name;
}

void CallWriter::Arguments(std::string_view json) {
  if (!dropping_) events_.Text(EventKind::kArguments, json, returned_ - 1);
}

void CallWriter::ArgumentsEscaped(std::string_view text) {
  if (dropping_) return;
  escaped_.clear();
  AppendJsonEscaped(text, &escaped_);
  Arguments(escaped_);
}

void CallWriter::End(bool malformed) {
  open_ = false;
  if (malformed) ++counters_.malformed_calls;
  if (dropping_) return;
  ParserEvent& event = events_.Add(EventKind::kToolCallEnd);
  event.call_index = returned_ - 1;
  event.malformed = malformed;
}

}  // namespace tessera::parser

#ifndef TESSERA_SERVICES_PARSER_FORMATS_EVENT_WRITER_H_
#define TESSERA_SERVICES_PARSER_FORMATS_EVENT_WRITER_H_

// From decided text to events: what white space a channel sends, what a call's deltas hold.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "services/parser/formats/output_parser.h"

namespace tessera::parser {

// The events of one Push. Text that follows text of the same kind joins its event.
class EventList {
 public:
  void SetTarget(std::vector<ParserEvent>* target) {
    target_ = target;
    first_ = target->size();
  }
  void Text(EventKind kind, std::string_view text, int call_index = 0);
  ParserEvent& Add(EventKind kind);

 private:
  std::vector<ParserEvent>* target_ = nullptr;
  size_t first_ = 0;  // events before it are an earlier Push's
};

// The reasoning and content channels. Trailing white space is held back: reasoning ends without it,
// and content beside a call has none.
class ChannelWriter {
 public:
  // `repeat_reasoning`: force_nonempty_content.
  ChannelWriter(EventList* events, ParserCounters* counters, bool repeat_reasoning)
      : events_(*events), counters_(*counters), repeat_reasoning_(repeat_reasoning) {}

  void Reasoning(std::string_view text);
  void Content(std::string_view text);
  // The white space held back belongs to markup, or ends the reasoning.
  void DropHeld() { held_.clear(); }
  // White space before a call is not content.
  void CallOpens();
  // The output has ended in reasoning or in content.
  void Finish(bool in_reasoning);

 private:
  void Send(EventKind kind, std::string_view text);
  // Sends all but the trailing white space of what is held and `text`.
  void Hold(EventKind kind, std::string_view text);

  EventList& events_;
  ParserCounters& counters_;
  const bool repeat_reasoning_;
  bool any_content_ = false;  // that is not white space
  bool any_call_ = false;
  bool any_reasoning_ = false;
  std::string held_;       // white space
  std::string reasoning_;  // sent so far, while it may have to be repeated
};

// The calls. Arguments are one JSON object; a format gives its members one after the other.
class CallWriter {
 public:
  CallWriter(EventList* events, ParserCounters* counters, CallIdSource* ids, bool parallel)
      : events_(*events), counters_(*counters), ids_(*ids), parallel_(parallel) {}

  void Begin(std::string_view name);
  // A piece of the arguments' JSON text, as it stands there.
  void Arguments(std::string_view json);
  // The inside of a string of the arguments.
  void ArgumentsEscaped(std::string_view text);
  void End(bool malformed);

  // Calls that the client sees.
  int returned() const { return returned_; }
  // The only call that is wanted has ended.
  bool complete() const { return !parallel_ && returned_ == 1 && !open_; }

 private:
  EventList& events_;
  ParserCounters& counters_;
  CallIdSource& ids_;
  const bool parallel_;
  bool open_ = false;
  bool dropping_ = false;
  int returned_ = 0;
  std::string escaped_;  // kept for its memory
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_EVENT_WRITER_H_

#ifndef TESSERA_SERVICES_PARSER_FORMATS_TOOL_SYNTAX_H_
#define TESSERA_SERVICES_PARSER_FORMATS_TOOL_SYNTAX_H_

// What one tool-call format has to say to the output machine: whether a call opens here, and then
// what the call holds. The machine owns everything else: channels, reasoning, fences, the end.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "services/parser/formats/event_writer.h"
#include "services/parser/formats/output_parser.h"
#include "services/parser/formats/text_buffer.h"
#include "services/parser/formats/value_types.h"

namespace tessera::parser {

// What a format works with. All are the machine's and outlive the format.
struct SyntaxContext {
  TextBuffer& buffer;
  CallWriter& calls;
  ParserCounters& counters;
  const EndOfText& end;
  const ToolTable& tools;
};

// Where the text that is asked about stands.
struct TextPlace {
  bool in_reasoning = false;
  bool line_start = false;        // of a line of the channel
  bool channel_blank = false;     // nothing but white space in the channel so far
  bool right_after_call = false;  // nothing but white space since the last call
};

struct Probe {
  enum class Kind : uint8_t {
    kText,        // no markup begins here
    kMore,        // may be a call: undecided; if the output is cut here it is dropped
    kMoreText,    // may be markup, but no call: released as text at any end
    kOpen,        // a call opens: the machine calls Open
    kDrop,        // markup of `bytes` that is nobody's text
    kMarkerText,  // a marker of `bytes` that is text
  };
  Kind kind = Kind::kText;
  size_t bytes = 0;
};

enum class CallStep : uint8_t { kAgain, kMore, kClosed };

class ToolSyntax {
 public:
  virtual ~ToolSyntax() = default;

  // The characters that markup may begin with.
  virtual std::string_view triggers() const = 0;
  // What begins at buffer.begin(), a trigger? Not called inside a fence. Asked again after more
  // text has come if it answers kMore or kMoreText; kDrop and kMarkerText are always acted upon.
  virtual Probe ProbeText(const TextPlace& place) = 0;
  // After kOpen: takes the opener and begins the call.
  virtual void Open() = 0;
  // Inside a call: takes what is decided. kMore is never the answer once the output has ended.
  // After kClosed the rest of the buffer is text.
  virtual CallStep StepCall() = 0;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_TOOL_SYNTAX_H_

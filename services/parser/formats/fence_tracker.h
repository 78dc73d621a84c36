#ifndef TESSERA_SERVICES_PARSER_FORMATS_FENCE_TRACKER_H_
#define TESSERA_SERVICES_PARSER_FORMATS_FENCE_TRACKER_H_

// Where the text of a channel stands: at the start of a line, inside a Markdown code fence, right
// behind a call.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera::parser {

// A fence opens with a line of at most three spaces and three or more backticks or tildes, of which
// a backtick fence's info string holds none, and closes with a line of at least as many of the
// same.
class FenceTracker {
 public:
  // The next text of the channel. Cost: linear in it.
  void Feed(std::string_view text);
  // The channel begins afresh (reasoning has ended).
  void Restart() { *this = FenceTracker(); }
  // A call has ended here: it counts as the start of a line.
  void AfterCall();

  bool in_fence() const { return fence_char_ != 0; }
  // No text yet on this line.
  bool at_line_start() const { return phase_ == Phase::kIndent && indent_ == 0; }
  // Nothing but white space since the last call.
  bool right_after_call() const { return right_after_call_; }
  // Nothing but white space since the channel began.
  bool blank() const { return blank_; }

 private:
  // kSpace: white space that rules out a fence; kOther: a line with text, which says no more.
  enum class Phase : uint8_t { kIndent, kSpace, kRun, kInfo, kCloseTail, kOther };
  void FeedByte(char c);
  void EndLine();

  Phase phase_ = Phase::kIndent;
  char run_char_ = 0;
  char fence_char_ = 0;  // of the open fence; 0: none
  bool right_after_call_ = false;
  bool blank_ = true;
  size_t indent_ = 0;
  size_t run_ = 0;
  size_t fence_run_ = 0;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_FENCE_TRACKER_H_

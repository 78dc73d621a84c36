#ifndef TESSERA_SERVICES_PARSER_FORMATS_QWEN3_CODER_H_
#define TESSERA_SERVICES_PARSER_FORMATS_QWEN3_CODER_H_

// The tool calls of Nemotron-3 (and Qwen3-Coder):
//
//   <tool_call>
//   <function=NAME>
//   <parameter=KEY>
//   value, unescaped
//   </parameter>
//   </function>
//   </tool_call>
//
// The format has no escapes, so a tag inside a value closes it only if what follows fits; the rules
// are the tables of the functions below. A value that is a string streams as it comes, with at most
// kLookaheadBytesMax held back; other values are sent when they close.

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "services/parser/formats/tool_syntax.h"

namespace tessera::parser {

class Qwen3CoderSyntax final : public ToolSyntax {
 public:
  explicit Qwen3CoderSyntax(const SyntaxContext& context) : context_(context) {}

  std::string_view triggers() const override { return "<"; }
  Probe ProbeText(const TextPlace& place) override;
  void Open() override;
  CallStep StepCall() override;

 private:
  enum class State : uint8_t { kParameters, kValueStart, kValue };
  // How the open value is sent.
  enum class Mode : uint8_t {
    kStream,     // it is a string
    kUndecided,  // it may be a string
    kHold,       // it is typed when it closes
    kDiscard,    // its name was used before
  };
  enum class Answer : uint8_t { kNo, kYes, kMore };

  Probe ProbeWrapper(const TextPlace& place);
  Probe ProbeBareFunction(const TextPlace& place);
  Probe ProbeCloser();
  Answer BodyFollows();
  // The name from `at` on: kYes sets `name` (trimmed, not empty) and `end` (of the name itself).
  Answer ReadName(uint64_t at, std::string_view* name, uint64_t* end);

  CallStep StepParameters();
  CallStep StepParameterName();
  CallStep StepNextCall();
  CallStep StepValueStart();
  CallStep StepValue();
  CallStep StepValueTag();
  CallStep EndOfValue();
  CallStep CloseCall(bool malformed);
  CallStep EndCutCall();

  void BeginValue(std::string_view name);
  void ValueBytes(std::string_view text);
  void StreamBytes(std::string_view text);
  void CloseValue();
  void SendKey();

  // Does the closing tag that ends at `after` close the open value?
  Answer ParameterCloses(uint64_t after);
  Answer FunctionCloses(uint64_t after);
  Answer CallCloses(uint64_t after);
  // Does the <parameter= at buffer.begin()?
  Answer NextParameterCloses();
  // Does all that closes a call follow from `at` on, up to the end or the next call?
  Answer IsFullEnd(uint64_t at, bool function_closed);
  // Is one of `tags` the next thing that is not white space from `at` on, or, `or_end`, the end of
  // the output? `after`, if given, is set behind the tag.
  Answer IsNext(uint64_t at, std::initializer_list<std::string_view> tags, bool or_end,
                uint64_t* after = nullptr);
  // Takes `bytes` of the buffer as part of the value.
  CallStep TakeData(size_t bytes);
  bool TooFar(uint64_t from, uint64_t to) const { return to - from > kLookaheadBytesMax; }

  const SyntaxContext context_;

  // Between calls.
  bool closer_due_ = false;     // the last call has not had its </tool_call>
  bool last_was_bare_ = false;  // the last call had no <tool_call>
  uint64_t literals_open_ = 0;  // <tool_call>s that were text, less </tool_call>s that were

  // Of the opener that ProbeText found.
  bool open_wrapped_ = false;
  uint64_t open_name_begin_ = 0;
  uint64_t open_name_end_ = 0;

  // Of the open call.
  bool wrapped_ = false;
  State state_ = State::kParameters;
  ParameterTypes parameters_;
  std::set<std::string, std::less<>> used_;
  bool any_parameter_ = false;  // a <parameter= has been seen
  bool any_member_ = false;     // one has been sent
  bool malformed_ = false;

  // Of the open value.
  Mode mode_ = Mode::kStream;
  char last_char_ = 0;  // of the value's text as written
  std::string name_;
  TypeSet types_;
  StringGuess guess_{TypeSet()};
  std::string raw_;           // kUndecided, kHold
  std::string newline_held_;  // kStream: may be the markup's newline: "", CR, LF or CR LF
  uint64_t nested_parameters_ = 0;
  uint64_t nested_functions_ = 0;
  uint64_t nested_calls_ = 0;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_QWEN3_CODER_H_

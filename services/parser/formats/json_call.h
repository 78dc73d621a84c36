#ifndef TESSERA_SERVICES_PARSER_FORMATS_JSON_CALL_H_
#define TESSERA_SERVICES_PARSER_FORMATS_JSON_CALL_H_

// A call written as JSON, {"name": NAME, "arguments": {…}}, which several formats wrap in markers
// of their own. "parameters" is accepted for "arguments", other keys are ignored, and the arguments
// may be a string that holds JSON.

#include <cstdint>
#include <string>
#include <string_view>

#include "services/parser/formats/json_stream.h"
#include "services/parser/formats/tool_syntax.h"

namespace tessera::parser {

// A call whose name and arguments do not begin within this is text. Bounds what is held back, and
// what is read twice if a sample of the marker stands in a sample.
inline constexpr size_t kHeaderBytesMax = 4 << 10;

// Reads ahead, without taking anything, until it is known that a call stands here and what its name
// is. Asked again for the same place it goes on where it stopped.
class JsonCallHeader {
 public:
  enum class Answer : uint8_t { kNo, kYes, kMore };
  // kObject and kString: all of it has been read, before the name. kOpenObject and kOpenString: the
  // name is known and they begin here.
  enum class Arguments : uint8_t { kNone, kObject, kString, kOpenObject, kOpenString };

  // Does a call begin at `at`, a '{'? `needs_arguments`: without them it is some other JSON.
  Answer Read(const TextBuffer& buffer, uint64_t at, bool needs_arguments);

  // After kYes.
  const std::string& name() const { return name_; }
  Arguments arguments() const { return arguments_; }
  // Where they begin and, unless they are open, end.
  uint64_t arguments_begin() const { return arguments_begin_; }
  uint64_t arguments_end() const { return arguments_end_; }
  // Behind the last byte that was looked at; the call's object goes on there unless closed().
  uint64_t end() const { return at_; }
  bool closed() const { return closed_; }

 private:
  enum class Phase : uint8_t { kOpen, kFirstKey, kNextKey, kKey, kColon, kBegin, kValue, kAfter };
  Answer FeedStructure(char c, bool needs_arguments);
  Answer BeginValue(char c);
  Answer EndPart(const TextBuffer& buffer);

  uint64_t begin_ = ~uint64_t{0};  // the place asked about
  uint64_t at_ = 0;
  uint64_t part_begin_ = 0;  // of the key or value being read
  Phase phase_ = Phase::kOpen;
  JsonSkipper skipper_;
  std::string key_;
  std::string name_;
  Arguments arguments_ = Arguments::kNone;
  uint64_t arguments_begin_ = 0;
  uint64_t arguments_end_ = 0;
  bool has_arguments_ = false;
  bool closed_ = false;
};

// The call after its header: sends the arguments and takes the rest of the JSON.
class JsonCallBody {
 public:
  explicit JsonCallBody(const SyntaxContext& context) : context_(context) {}

  // Begins the call and takes the header from the buffer.
  void Open(const JsonCallHeader& header);
  // Begins a call of which only the arguments are JSON. REQUIRES: a '{' at buffer.begin().
  void OpenArguments(std::string_view name);
  // As ToolSyntax::StepCall. What is no JSON ends the call and is text.
  CallStep Step();

 private:
  enum class State : uint8_t { kArguments, kString, kTail, kClosed };
  void Begin(std::string_view name);
  void SendString(std::string_view json);
  CallStep StepArguments();
  CallStep StepString();
  CallStep Close(bool malformed);

  const SyntaxContext context_;
  State state_ = State::kClosed;
  bool tail_follows_ = false;
  bool malformed_ = false;
  JsonObjectStream stream_;
  JsonSkipper tail_;
  JsonSkipper string_;
  std::string raw_;  // arguments as a string, so far; kTypedValueBytesMax at most
  std::string out_;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_JSON_CALL_H_

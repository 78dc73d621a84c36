#ifndef TESSERA_SERVICES_PARSER_FORMATS_OUTPUT_PARSER_H_
#define TESSERA_SERVICES_PARSER_FORMATS_OUTPUT_PARSER_H_

// From a model's raw text to reasoning, content and tool calls: one incremental machine. Text comes
// in pieces cut anywhere, events go out; a whole text is one piece. Any split of the same text
// gives events whose concatenation (Assemble below) is the same. No RPC, no clock, no randomness
// here: the parser service is an adapter around this class.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace tessera::parser {

// Named limits. All but kTypedValueBytesMax bound what may be held back while a question is open;
// past a limit the text in question is ordinary text (or data of the value it stands in).
inline constexpr size_t kNameBytesMax = 1024;       // a function or parameter name
inline constexpr size_t kLookaheadBytesMax = 4096;  // white space and closing tags behind a tag
inline constexpr size_t kWhitespaceHeldBytesMax = 64 << 10;  // trailing white space of a channel
// A value that is not a plain string is sent when it closes. One longer than this is sent as a
// string.
inline constexpr size_t kTypedValueBytesMax = 16 << 20;
// Reasoning kept so that force_nonempty_content can repeat it. Longer reasoning is not repeated.
inline constexpr size_t kPromotedBytesMax = 16 << 20;
inline constexpr size_t kToolCallsMax =
    1024;  // calls of one output; later ones are dropped, counted
inline constexpr int kSchemaNestingMax = 100;  // of a tool's schema
inline constexpr size_t kToolsMax = 4096;      // tools of one request

enum class ToolChoice : uint8_t { kAuto, kNone, kRequired, kNamed };

struct Tool {
  std::string name;
  nlohmann::ordered_json
      parameters;  // JSON schema of the arguments; null if the tool declares none
};

// Copying and comparing JSON recurses, so a schema from outside is measured before anything else
// touches it. True beyond kSchemaNestingMax. Does not recurse; cost: linear.
bool NestsTooDeep(const nlohmann::ordered_json& schema);

// What one request asks for. kAuto without tools is kNone, as in the OpenAI API.
struct ParserOptions {
  std::string reasoning_format = "nemotron_v3";  // one of ReasoningFormatNames()
  std::string tool_format = "qwen3_coder";       // one of ToolFormatNames()
  bool enable_thinking = true;
  bool force_nonempty_content = false;  // nemotron_v3 implies it when thinking is off
  std::vector<Tool> tools;
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::string tool_choice_name;  // with kNamed; must be one of `tools`
  bool parallel_tool_calls = true;
  bool fences_are_text = true;  // tool markup inside a Markdown code fence is an example
};

// Why the engine stopped.
enum class EngineFinish : uint8_t { kStop, kLength, kStopString, kAbort };

// What the client is told.
enum class FinishReason : uint8_t { kStop, kLength, kToolCalls, kAborted };

// "stop", "length", "tool_calls", "aborted".
std::string_view FinishReasonName(FinishReason reason);

enum class EventKind : uint8_t {
  kReasoning,      // text
  kContent,        // text
  kToolCallBegin,  // call_index, id, name
  kArguments,      // call_index, text: a fragment of the arguments' JSON text
  kToolCallEnd,    // call_index, malformed
  kFinish,         // finish_reason; always the last event, exactly once
};

struct ParserEvent {
  EventKind kind = EventKind::kContent;
  std::string text;  // never empty for kReasoning, kContent, kArguments; always whole code points
  int call_index = 0;
  std::string id;
  std::string name;
  // kContent: force_nonempty_content repeats the reasoning, which has already gone out as such. A
  // stream passes it on as it is; a whole response takes it as content and has no reasoning.
  bool promoted = false;
  bool malformed = false;  // kToolCallEnd: the call had to be repaired or cut
  FinishReason finish_reason = FinishReason::kStop;
};

// Gives the ids of tool calls, unique within a conversation. Called once a call, in order.
class CallIdSource {
 public:
  virtual ~CallIdSource() = default;
  virtual std::string NextCallId() = 0;
};

// "call_" and 24 letters and digits from a generator seeded by the caller: give each choice of each
// request another seed, from a good source.
class SeededCallIds final : public CallIdSource {
 public:
  explicit SeededCallIds(uint64_t seed) : state_(seed) {}
  std::string NextCallId() override;

 private:
  uint64_t state_;
};

// Facts for metrics, of one output.
struct ParserCounters {
  uint64_t raw_strings = 0;      // values that fit no type of their schema and went out as strings
  uint64_t malformed_calls = 0;  // calls that were repaired (a tag was missing) or cut
  uint64_t markers_as_text = 0;  // tool or reasoning markers that turned out to be text
  uint64_t parameters_dropped = 0;  // second use of a name, or cut inside a typed value or a name
  uint64_t calls_dropped = 0;  // beyond the first without parallel_tool_calls, or kToolCallsMax
  uint64_t implicit_reasoning_ends = 0;  // a call ended the reasoning
  uint64_t promoted_replies = 0;         // force_nonempty_content acted
  uint64_t invalid_utf8 = 0;             // byte sequences replaced by U+FFFD
  uint64_t limits_hit = 0;               // one of the limits above

  bool operator==(const ParserCounters&) const = default;
};

// One output of one choice.
// Threading: one thread at a time. Errors: none; every text has a result. Cost: linear in the text.
class OutputParser {
 public:
  virtual ~OutputParser() = default;

  // Appends to `events` what `text` decides. Cut anywhere, inside a code point too; may be empty.
  // REQUIRES: Finish has not been called.
  virtual void Push(std::string_view text, std::vector<ParserEvent>* events) = 0;

  // The output has ended: settles what is open; the last event is kFinish. REQUIRES: called once.
  virtual void Finish(EngineFinish finish, std::vector<ParserEvent>* events) = 0;

  // Accounting of reasoning tokens by position. Offsets count bytes of the text pushed so far.
  // Text before decided_offset() has been taken; what is behind it is held back.
  virtual uint64_t decided_offset() const = 0;
  // True while text at decided_offset() is in the reasoning state.
  virtual bool in_reasoning() const = 0;
  // Where the reasoning state ended: the first byte of </think>, or of the call that ended it.
  // While it lasts, decided_offset(); after Finish inside it, the length of the text. 0 if thinking
  // is off. A token is a reasoning token if its text begins before this offset.
  virtual uint64_t reasoning_end_offset() const = 0;

  // parallel_tool_calls is false and its one call is complete: generation may stop.
  virtual bool complete() const = 0;

  virtual const ParserCounters& counters() const = 0;
};

// Counts reasoning tokens: call Add for each generated token, with the bytes of text it added, and
// Settle after each Push and after Finish. Bounded by the tokens held back.
class ReasoningTokenCounter {
 public:
  void Add(size_t text_bytes);
  void Settle(const OutputParser& parser);
  uint64_t reasoning_tokens() const { return reasoning_tokens_; }

 private:
  uint64_t offset_ = 0;
  uint64_t reasoning_tokens_ = 0;
  std::vector<uint64_t> open_;  // begin offsets of tokens whose text is held back
};

// `ids` is borrowed for the parser's life; `options` is copied.
// Errors: kInvalidArgument naming the field: a format that does not exist (lists those that do), a
// tool_choice name that is not declared, tool_choice required or named without tools, a tool
// without a name, or with a schema that is no object, or too many tools.
absl::StatusOr<std::unique_ptr<OutputParser>> CreateOutputParser(const ParserOptions& options,
                                                                 CallIdSource* ids);

// The events of one output put together: the whole response.
struct ParsedToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text of one object
  bool malformed = false;
};
struct ParsedMessage {
  std::optional<std::string> reasoning;
  std::optional<std::string> content;
  std::vector<ParsedToolCall> tool_calls;
  FinishReason finish_reason = FinishReason::kStop;
};
ParsedMessage Assemble(const std::vector<ParserEvent>& events);

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_OUTPUT_PARSER_H_

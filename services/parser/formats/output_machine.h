#ifndef TESSERA_SERVICES_PARSER_FORMATS_OUTPUT_MACHINE_H_
#define TESSERA_SERVICES_PARSER_FORMATS_OUTPUT_MACHINE_H_

// The machine behind OutputParser. One machine for reasoning and tool calls, because a call can end
// the reasoning and an argument can hold the reasoning's end marker.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "services/parser/formats/event_writer.h"
#include "services/parser/formats/fence_tracker.h"
#include "services/parser/formats/output_parser.h"
#include "services/parser/formats/reasoning_format.h"
#include "services/parser/formats/text_buffer.h"
#include "services/parser/formats/tool_syntax.h"

namespace tessera::parser {

// Input is appended to a buffer; each state takes what is decided and leaves the rest; the end of
// the output is a flag that settles open questions.
//
//   kStart -> kReasoning, kContent     an opener at the very start has been dropped or ruled out
//   kReasoning -> kContent             the end marker
//   kReasoning, kContent -> kCall      a call opens
//   kCall -> kContent                  it has closed
class OutputMachine final : public OutputParser {
 public:
  // REQUIRES: `options` has been checked.
  OutputMachine(const ParserOptions& options, CallIdSource* ids);

  void Push(std::string_view text, std::vector<ParserEvent>* events) override;
  void Finish(EngineFinish finish, std::vector<ParserEvent>* events) override;
  uint64_t decided_offset() const override { return buffer_.begin(); }
  bool in_reasoning() const override;
  uint64_t reasoning_end_offset() const override;
  bool complete() const override { return calls_.complete(); }
  const ParserCounters& counters() const override { return counters_; }

 private:
  enum class State : uint8_t { kStart, kReasoning, kContent, kCall };

  void Run();
  // Each returns whether there may be more to do.
  bool StepStart();
  bool StepText();
  bool StepCall();

  // At a trigger. True: markup was dealt with. False: `probe` says what the tools make of it.
  bool TakeMarker(bool* more);
  Probe ProbeTools();
  void TakeText(size_t bytes);
  void EndReasoning();
  FinishReason ReasonFor(EngineFinish finish) const;

  const ParserOptions options_;
  const ReasoningFormat& format_;
  const bool thinking_;  // the output starts in reasoning
  const ToolTable tools_;

  ParserCounters counters_;
  EndOfText end_;
  TextBuffer buffer_;
  Utf8Intake intake_;
  EventList events_;
  ChannelWriter channel_;
  CallWriter calls_;
  FenceTracker place_;
  std::unique_ptr<ToolSyntax> syntax_;  // null: markup of tools is text
  std::string triggers_;

  State state_ = State::kStart;
  bool reasoning_ended_ = false;
  uint64_t reasoning_end_ = 0;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_OUTPUT_MACHINE_H_

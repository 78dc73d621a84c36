#ifndef TESSERA_SERVICES_PARSER_CHAT_SESSION_H_
#define TESSERA_SERVICES_PARSER_CHAT_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/parser/chat_request.h"
#include "services/parser/formats/output_parser.h"
#include "tessera/parser/v1/parser.pb.h"
#include "tessera/tokenizer/v1/tokenizer.pb.h"

namespace tessera::parser {

// One chat request on its way up: the tokenizer's events in, the parser's events out. Knows no RPC.
// The protocol of tessera.parser.v1 is kept here: one `started`, deltas, one `finished`. A whole
// answer is the same machine with its events kept: nothing is emitted, TakeResponse has them all.
//
// Threading: one thread at a time. Errors: a tokenizer that breaks its protocol is kInternal.
// Cost: linear in the text; holds back what OutputParser holds back, and the log probabilities of
// tokens whose text is held back.
class ChatSession {
 public:
  using Emit = std::function<void(v1::ChatStreamResponse event)>;
  enum class Form : uint8_t { kStream, kWhole };

  // `id_seed` seeds the ids of tool calls: draw a new one for each request.
  static absl::StatusOr<std::unique_ptr<ChatSession>> Create(const ChatPlan& plan, Form form,
                                                             uint64_t id_seed);

  absl::Status OnEvent(tokenizer::v1::GenerateResponse& event, const Emit& emit);

  // Whether `finished` has been emitted.
  bool finished() const { return finished_; }
  // Whether nothing that the tokenizer could still send would change the answer (one call was
  // allowed, and it is complete): the call below may be cancelled and FinishEarly called.
  bool complete() const;
  // Ends every choice that is still open, then emits `finished`.
  void FinishEarly(const Emit& emit);
  // With Form::kWhole, once finished: the answer. Leaves the session empty.
  v1::ChatResponse TakeResponse();
  // Whether any text or call has gone out.
  bool sent_any() const { return sent_any_; }

  // Sums over the choices, for metrics.
  ParserCounters counters() const;
  // Finished choices whose answer was empty: neither reasoning nor content nor calls.
  uint64_t empty_replies() const { return empty_replies_; }
  const v1::Usage& usage() const { return usage_; }

 private:
  struct PendingToken {
    uint64_t begin = 0;  // offset of its text in the choice's raw text
    tokenizer::v1::TextToken token;
  };
  struct ChoiceState {
    std::unique_ptr<SeededCallIds> ids;
    std::unique_ptr<OutputParser> parser;
    ReasoningTokenCounter reasoning;
    uint64_t text_bytes = 0;
    uint32_t completion_tokens = 0;
    std::vector<PendingToken> pending;  // logprobs not sent yet
    bool ended = false;
    bool said_anything = false;
    // Form::kWhole only.
    std::vector<ParserEvent> kept;
    v1::ChatChoiceEnd end;
  };

  ChatSession(const ChatPlan& plan, Form form) : plan_(plan), form_(form) {}
  absl::Status OnDelta(tokenizer::v1::GenerateDelta& delta, const Emit& emit);
  void TakeTokens(tokenizer::v1::GenerateDelta& delta, ChoiceState& choice);
  // Turns parser events into deltas; `end` goes on the last one.
  void EmitEvents(uint32_t index, std::vector<ParserEvent>& events,
                  std::optional<v1::ChatChoiceEnd> end, const Emit& emit);
  template <class Tokens>
  void MovePending(ChoiceState& choice, bool all, Tokens& out);
  void EmitFinished(const Emit& emit);

  const ChatPlan plan_;
  const Form form_;
  std::string request_id_;
  std::string model_;
  std::vector<ChoiceState> choices_;
  std::vector<ParserEvent> events_;  // reused between deltas
  v1::Usage usage_;
  engine::v1::Timings timings_;
  uint64_t empty_replies_ = 0;
  bool started_ = false;
  bool finished_ = false;
  bool sent_any_ = false;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_CHAT_SESSION_H_

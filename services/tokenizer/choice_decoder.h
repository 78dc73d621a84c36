#ifndef TESSERA_SERVICES_TOKENIZER_CHOICE_DECODER_H_
#define TESSERA_SERVICES_TOKENIZER_CHOICE_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/engine/v1/engine.pb.h"
#include "tessera/tokenizer/v1/tokenizer.pb.h"
#include "tokenizer/bpe/tokenizer.h"
#include "tokenizer/detokenizer/stop_matcher.h"
#include "tokenizer/detokenizer/stream_decoder.h"

namespace tessera::services {

// Tokens without text are kept back until some comes, so that a stream has no empty messages; but
// not more of them than this.
inline constexpr int kSilentTokensMax = 32;

struct DecodeOptions {
  tessera::tokenizer::StreamDecoderOptions decoder;
  std::vector<std::string> stop;
  bool include_stop_string = false;
  bool want_logprobs = false;
};

// The tokens of one choice on their way to text: decoding, stop strings, and which token released
// how many bytes. What comes out, joined, depends on the tokens alone and not on how the engine's
// deltas were cut.
// Threading: one thread at a time. Borrows the tokenizer.
class ChoiceDecoder final {
 public:
  // Errors: kInvalidArgument for the stop strings, which the caller has checked already.
  static absl::StatusOr<ChoiceDecoder> Create(const tessera::tokenizer::Tokenizer& tokenizer,
                                              uint32_t index, const DecodeOptions& options);

  // Takes one delta of the engine (moving from its tokens). True if `delta()` should be sent now.
  // Once ended, more tokens are ignored.
  bool Append(engine::v1::GenerateDelta& delta);

  // What there is to send; the caller moves it away.
  tokenizer::v1::GenerateDelta TakeDelta();

  bool ended() const { return end_.has_value(); }
  // Whether a stop string ended it, so that the engine may still be generating.
  bool stopped_early() const { return stopped_early_; }
  const tokenizer::v1::ChoiceEnd& end() const { return *end_; }
  uint32_t completion_tokens() const { return completion_tokens_; }
  // Code points sent so far.
  uint64_t characters() const { return characters_; }

 private:
  ChoiceDecoder(const tessera::tokenizer::Tokenizer& tokenizer, uint32_t index,
                const DecodeOptions& options, tessera::tokenizer::StopMatcher matcher);

  void AppendToken(engine::v1::GeneratedToken& token);
  void End(engine::v1::FinishReason reason, const engine::v1::ChoiceEnd* from_engine);

  const tessera::tokenizer::Tokenizer* tokenizer_;
  uint32_t index_;
  bool want_logprobs_;
  bool has_stop_strings_;
  tessera::tokenizer::StreamDecoder decoder_;
  tessera::tokenizer::StopMatcher matcher_;
  std::string decoded_;  // scratch
  tokenizer::v1::GenerateDelta pending_;
  std::optional<tokenizer::v1::ChoiceEnd> end_;
  bool stopped_early_ = false;
  uint32_t completion_tokens_ = 0;
  uint64_t characters_ = 0;
};

// Whether `next` could be added to `last` (same choice, `last` not the choice's end), and if so it
// was: what the stream does with messages that wait.
bool MergeResponses(tokenizer::v1::GenerateResponse& last, tokenizer::v1::GenerateResponse& next);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_TOKENIZER_CHOICE_DECODER_H_

#ifndef TESSERA_TOKENIZER_DETOKENIZER_STREAM_DECODER_H_
#define TESSERA_TOKENIZER_DETOKENIZER_STREAM_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/detokenizer/token_table.h"

namespace tessera::tokenizer {

// A longer run of byte tokens is given out up to its last whole character, so that a stream cannot
// be silent for ever.
inline constexpr size_t kByteRunBytesMax = 64;

struct StreamDecoderOptions {
  // Drops the tokens that the file marks special.
  bool skip_special_tokens = false;
  // Drops these ids whatever they are: the chat path drops the end-of-turn token and keeps all
  // others, since "</think>" and "<tool_call>" are what the parser reads. A handful at most
  // (searched linearly).
  std::vector<TokenId> drop_ids;
};

// Turns the ids of one stream into text, giving each character as soon as it is certain: never half
// a code point, and nothing kept back that cannot change any more. The joined output equals
// Tokenizer::Decode of all ids, however they are split over calls.
//
// Ownership: borrows the table, which must live longer. Holds at most three pending bytes; with
// byte fallback at most kByteRunBytesMax of a run of byte tokens, whose bytes are all text or all
// U+FFFD, which only its end decides.
// Threading: one thread at a time. Errors: none; unknown ids give nothing.
class StreamDecoder {
 public:
  explicit StreamDecoder(const TokenTable& table, StreamDecoderOptions options = {});

  // The text that `id` makes certain; possibly empty.
  std::string Append(TokenId id);
  // The same, appended to `text`.
  void Append(TokenId id, std::string& text);

  // The end of the stream: what was pending, as U+FFFD where it is broken. The decoder then starts
  // anew.
  std::string Finish();
  void Finish(std::string& text);

 private:
  bool IsDropped(TokenId id, uint8_t kind) const;
  void AppendBytes(std::string_view bytes, std::string& text);
  void AppendRunByte(char byte, std::string& text);
  void EndRun(std::string& text);
  void Emit(std::string_view valid_text, std::string& text);

  const TokenTable* table_;
  StreamDecoderOptions options_;
  bool first_token_ = true;
  bool run_broken_ = false;
  uint32_t spaces_to_strip_;
  // Bytes whose text is not certain yet: the begin of a code point, or a byte-fallback run.
  std::string pending_;
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_DETOKENIZER_STREAM_DECODER_H_

#ifndef TESSERA_TOKENIZER_BPE_TOKENIZER_H_
#define TESSERA_TOKENIZER_BPE_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tokenizer/detokenizer/token_table.h"
#include "tokenizer/vocab/tokenizer_config.h"

namespace tessera::tokenizer {

// A longer text is refused (kResourceExhausted): it could not fit any context this server offers.
inline constexpr size_t kTextBytesMax = size_t{8} << 20;

// What a string that spells an added token ("<|im_end|>", "<think>") becomes.
enum class AddedTokens : uint8_t {
  kParse,          // its id: for text that the server itself wrote, such as a rendered template
  kSpecialAsText,  // plain text if the token is marked special, its id otherwise
  kAllAsText,      // plain text always: for anything a user wrote
};

// Where a token came from: bytes [begin, end) of the input text. A token that the post-processor
// added has begin == end.
struct TokenSpan {
  uint32_t begin;
  uint32_t end;
  bool operator==(const TokenSpan&) const = default;
};

struct EncodeOptions {
  // Runs the file's post-processor (for Nemotron: puts "<s>" in front). A chat prompt that a
  // template rendered is encoded without.
  bool add_special_tokens = false;
  AddedTokens added_tokens = AddedTokens::kParse;
};

// One part of a prompt with its own trust. Each segment is encoded by itself, so no token spans a
// border: the ids at a seam may differ from those of the joined text.
struct Segment {
  std::string_view text;
  AddedTokens added_tokens = AddedTokens::kParse;
};

// What turns one text into ids: the part that differs between file formats.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  // Appends the ids of `text`, which is UTF-8 and at most kTextBytesMax long; with `spans` also one
  // span for each (kUnimplemented when the file normalizes this text into another one).
  virtual absl::Status Encode(std::string_view text, AddedTokens added_tokens,
                              std::vector<TokenId>& ids, std::vector<TokenSpan>* spans) const = 0;
  // The id of a token by its spelling in the file.
  virtual std::optional<TokenId> Find(std::string_view token) const = 0;
};

// A tokenizer as a model ships it: tokenizer.json (or a sentencepiece .model) and
// tokenizer_config.json, giving the ids of the Hugging Face library, id for id.
//
// Ownership: owns all it needs once loaded; the files are not kept open.
// Threading: immutable; any number of threads may call it at once.
class Tokenizer final {
 public:
  // `path` is a model directory, a tokenizer.json or a sentencepiece .model file. Beside a file the
  // directory's tokenizer_config.json is read too, if there is one.
  // Errors: kNotFound (no such file), kInvalidArgument (broken; names the field), kUnimplemented
  // (names the component that is not supported), kResourceExhausted (over a limit of
  // tokenizer_file.h). The file is outside input: nothing in it can crash or hang the caller.
  // Cost: 131,072 entries take some 0.3 s and 100 MB.
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Load(const std::string& path);

  // From the text of a tokenizer.json and, if not empty, of a tokenizer_config.json.
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> FromJson(
      std::string_view tokenizer_json, std::string_view tokenizer_config_json = {});

  // Text to ids. Errors: kInvalidArgument (not UTF-8: names the byte), kResourceExhausted (longer
  // than kTextBytesMax).
  // Cost: O(n log n) in the worst case, whatever the text. No file sets truncation or padding here:
  // those two sections are ignored.
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                              const EncodeOptions& options = {}) const;

  // The same, appended to `ids`; on error `ids` is left as it was. With `spans` (not null) one span
  // is appended for each id; kUnimplemented when the file normalizes this text into another one.
  absl::Status EncodeTo(std::string_view text, const EncodeOptions& options,
                        std::vector<TokenId>& ids, std::vector<TokenSpan>* spans = nullptr) const;

  // The segments' ids in order, then the post-processor over the whole when asked. The limit of
  // kTextBytesMax holds for the sum.
  absl::StatusOr<std::vector<TokenId>> EncodeSegments(absl::Span<const Segment> segments,
                                                      bool add_special_tokens = false) const;

  // Ids to text. Unknown ids give nothing; broken UTF-8 gives U+FFFD, one per maximal broken part.
  // For a stream of ids use detokenizer/stream_decoder.h, which gives the same text.
  std::string Decode(absl::Span<const TokenId> ids, bool skip_special_tokens) const;

  // What a single id stands for, and the table StreamDecoder needs (which lives as long as this).
  const TokenTable& token_table() const { return token_table_; }
  // The bytes that `id` adds to a text; empty for an unknown id. Not always valid UTF-8 alone.
  std::string_view TokenBytes(TokenId id) const { return token_table_.Bytes(id); }
  // Whether `id` is an added token marked special.
  bool IsSpecial(TokenId id) const { return token_table_.IsSpecial(id); }
  // The id of a token by its spelling in the file ("<|im_end|>", "Ġhello").
  std::optional<TokenId> TokenToId(std::string_view token) const;
  // One more than the highest id of the file. The model's own vocabulary may be padded beyond it.
  size_t vocab_size() const { return token_table_.size(); }

  // tokenizer_config.json and chat_template.jinja; default values where the files say nothing.
  const TokenizerConfig& config() const { return config_; }
  std::optional<TokenId> bos_id() const { return bos_id_; }
  std::optional<TokenId> eos_id() const { return eos_id_; }

 private:
  struct Parts;  // what a loader fills in
  explicit Tokenizer(Parts parts);
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Build(std::string_view tokenizer_json,
                                                                TokenizerConfig config);

  std::unique_ptr<const TextEncoder> encoder_;
  TokenTable token_table_;
  TokenizerConfig config_;
  std::vector<TokenId> prefix_ids_;  // what the post-processor puts in front
  std::vector<TokenId> suffix_ids_;  // and behind
  std::optional<TokenId> bos_id_;
  std::optional<TokenId> eos_id_;
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_BPE_TOKENIZER_H_

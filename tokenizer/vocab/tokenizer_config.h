#ifndef TESSERA_TOKENIZER_VOCAB_TOKENIZER_CONFIG_H_
#define TESSERA_TOKENIZER_VOCAB_TOKENIZER_CONFIG_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tessera::tokenizer {

// tokenizer_config.json is refused beyond this (kResourceExhausted).
inline constexpr size_t kConfigBytesMax = size_t{16} << 20;
// A chat template is refused beyond this.
inline constexpr size_t kChatTemplateBytesMax = size_t{1} << 20;
inline constexpr size_t kChatTemplatesMax = 64;

struct NamedTemplate {
  std::string name;  // "default" for the only one
  std::string text;
};

// The parts of tokenizer_config.json that a server needs. A token is named by its text, whether the
// file writes it as a string or as an object with "content".
struct TokenizerConfig {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> pad_token;
  std::optional<std::string> unk_token;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::vector<NamedTemplate> chat_templates;

  // The text of the template of this name, or null.
  const std::string* ChatTemplate(std::string_view name = "default") const;
};

// Errors: kInvalidArgument names the field that has the wrong type. Unknown fields are skipped.
absl::StatusOr<TokenizerConfig> ParseTokenizerConfig(std::string_view json);

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_VOCAB_TOKENIZER_CONFIG_H_

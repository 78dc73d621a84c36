#ifndef TESSERA_SERVICES_TOKENIZER_TEXT_MODEL_H_
#define TESSERA_SERVICES_TOKENIZER_TEXT_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tokenizer/bpe/tokenizer.h"
#include "tokenizer/chat_template/chat_template_set.h"

namespace tessera::services {

// A file of a model directory that is larger than this is not read.
inline constexpr size_t kModelFileBytesMax = size_t{256} << 20;

// One file that clients may fetch.
struct ModelFile {
  std::string name;
  std::string sha256;  // hexadecimal
  std::string content;
};

// Everything about a model that concerns text, read once from its directory. Immutable.
struct TextModel {
  std::unique_ptr<const tessera::tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<tessera::tokenizer::ChatTemplateSet> templates;  // null: the model has none
  std::vector<std::string> template_variables;                     // of all templates, sorted
  std::string default_template;           // the text of "default"; empty: none
  nlohmann::ordered_json special_tokens;  // bos_token and the like, for templates
  std::vector<uint32_t> end_ids;          // generation_config.json's and the tokenizer's, sorted
  // Ids of added tokens: texts that spell one become it when added tokens are recognised.
  absl::flat_hash_set<uint32_t> added_ids;
  size_t token_bytes_longest = 1;
  std::vector<ModelFile> files;
};

// Errors: those of Tokenizer::Load and of the templates, and kInvalidArgument naming the file and
// the field for a broken generation_config.json.
// Cost: a second for 131,072 entries.
absl::StatusOr<std::shared_ptr<const TextModel>> LoadTextModel(const std::string& directory,
                                                               bool callers_may_send_templates);

// The same from texts, for tests. `generation_config_json` may be empty.
absl::StatusOr<std::shared_ptr<const TextModel>> TextModelFromJson(
    const std::string& tokenizer_json, const std::string& tokenizer_config_json,
    const std::string& chat_template, const std::string& generation_config_json,
    bool callers_may_send_templates);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_TOKENIZER_TEXT_MODEL_H_

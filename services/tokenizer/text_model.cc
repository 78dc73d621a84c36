#include "services/tokenizer/text_model.h"

#include <openssl/sha.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/field_error.h"

namespace tessera::services {
namespace {

using tessera::tokenizer::AddedTokens;
using tessera::tokenizer::ChatTemplateSet;
using tessera::tokenizer::TokenId;
using tessera::tokenizer::Tokenizer;
using tessera::tokenizer::TokenizerConfig;

// What a client needs to encode and render by itself.
constexpr const char* kFileNames[] = {"tokenizer.json",        "tokenizer.model",
                                      "tokenizer_config.json", "special_tokens_map.json",
                                      "chat_template.jinja",   "generation_config.json"};

std::string Sha256(const std::string& content) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof digest));
}

// Nothing if there is no such file.
absl::StatusOr<std::optional<std::string>> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  const std::streamoff size = in.tellg();
  if (size < 0 || static_cast<uint64_t>(size) > kModelFileBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has ", size, " bytes; the limit is ", kModelFileBytesMax));
  }
  std::string content(static_cast<size_t>(size), '\0');
  in.seekg(0);
  if (!in.read(content.data(), size)) return absl::DataLossError("cannot read " + path);
  return content;
}

absl::Status AddEndIds(const std::string& generation_config_json, TextModel& model) {
  if (generation_config_json.empty()) return absl::OkStatus();
  const auto config = nlohmann::json::parse(generation_config_json, nullptr, false);
  if (!config.is_object()) {
    return InvalidField("generation_config.json", "is no JSON object");
  }
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) return absl::OkStatus();
  const auto add = [&](const nlohmann::json& id) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > UINT32_MAX) return false;
    model.end_ids.push_back(id.get<uint32_t>());
    return true;
  };
  bool all = found->is_array() ? true : add(*found);
  if (found->is_array()) {
    for (const auto& id : *found) all = all && add(id);
  }
  return all ? absl::OkStatus()
             : InvalidField("generation_config.json: eos_token_id",
                            "is neither a token id nor a list of them");
}

// An added token is one that its own spelling becomes only when added tokens are recognised.
void FindAddedIds(TextModel& model) {
  const Tokenizer& tokenizer = *model.tokenizer;
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string_view bytes = tokenizer.TokenBytes(id);
    model.token_bytes_longest = std::max(model.token_bytes_longest, bytes.size());
    if (bytes.empty()) continue;
    ids.clear();
    const bool plain =
        tokenizer.EncodeTo(bytes, {.added_tokens = AddedTokens::kAllAsText}, ids).ok() &&
        ids.size() == 1 && ids[0] == id;
    if (plain) continue;
    ids.clear();
    if (tokenizer.EncodeTo(bytes, {.added_tokens = AddedTokens::kParse}, ids).ok() &&
        ids.size() == 1 && ids[0] == id) {
      model.added_ids.insert(id);
    }
  }
}

absl::Status AddTemplates(const TokenizerConfig& config, bool callers_may_send, TextModel& model) {
  std::vector<ChatTemplateSet::Named> named;
  for (const tessera::tokenizer::NamedTemplate& entry : config.chat_templates) {
    named.push_back({entry.name, entry.text});
  }
  if (named.empty() && !callers_may_send) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<ChatTemplateSet>> set =
      ChatTemplateSet::Create(named, callers_may_send);
  if (!set.ok()) return set.status();
  model.templates = *std::move(set);
  std::set<std::string> variables;
  for (const ChatTemplateSet::Named& entry : named) {
    const auto compiled = model.templates->Find(entry.name);
    if (compiled == nullptr) continue;
    variables.insert(compiled->variables().begin(), compiled->variables().end());
  }
  model.template_variables.assign(variables.begin(), variables.end());
  if (const std::string* text = config.ChatTemplate()) model.default_template = *text;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const TextModel>> Finish(std::unique_ptr<const Tokenizer> tokenizer,
                                                        const TokenizerConfig& config,
                                                        const std::string& generation_config_json,
                                                        bool callers_may_send,
                                                        std::vector<ModelFile> files) {
  auto model = std::make_shared<TextModel>();
  model->tokenizer = std::move(tokenizer);
  model->files = std::move(files);
  if (absl::Status status = AddEndIds(generation_config_json, *model); !status.ok()) return status;
  if (model->tokenizer->eos_id().has_value()) model->end_ids.push_back(*model->tokenizer->eos_id());
  std::sort(model->end_ids.begin(), model->end_ids.end());
  model->end_ids.erase(std::unique(model->end_ids.begin(), model->end_ids.end()),
                       model->end_ids.end());
  if (absl::Status status = AddTemplates(config, callers_may_send, *model); !status.ok()) {
    return status;
  }
  model->special_tokens = nlohmann::ordered_json::object();
  const auto add = [&](const char* name, const std::optional<std::string>& token) {
    if (token.has_value()) model->special_tokens[name] = *token;
  };
  add("bos_token", config.bos_token);
  add("eos_token", config.eos_token);
  add("pad_token", config.pad_token);
  add("unk_token", config.unk_token);
  FindAddedIds(*model);
  return model;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TextModel>> LoadTextModel(const std::string& directory,
                                                               bool callers_may_send_templates) {
  absl::StatusOr<std::unique_ptr<const Tokenizer>> tokenizer = Tokenizer::Load(directory);
  if (!tokenizer.ok()) return tokenizer.status();
  std::vector<ModelFile> files;
  std::string generation_config;
  for (const char* name : kFileNames) {
    absl::StatusOr<std::optional<std::string>> content =
        ReadFile(absl::StrCat(directory, "/", name));
    if (!content.ok()) return content.status();
    if (!content->has_value()) continue;
    if (std::string_view(name) == "generation_config.json") generation_config = **content;
    files.push_back({name, Sha256(**content), **std::move(content)});
  }
  const TokenizerConfig config = (*tokenizer)->config();
  return Finish(*std::move(tokenizer), config, generation_config, callers_may_send_templates,
                std::move(files));
}

absl::StatusOr<std::shared_ptr<const TextModel>> TextModelFromJson(
    const std::string& tokenizer_json, const std::string& tokenizer_config_json,
    const std::string& chat_template, const std::string& generation_config_json,
    bool callers_may_send_templates) {
  absl::StatusOr<std::unique_ptr<const Tokenizer>> tokenizer =
      Tokenizer::FromJson(tokenizer_json, tokenizer_config_json);
  if (!tokenizer.ok()) return tokenizer.status();
  TokenizerConfig config = (*tokenizer)->config();
  if (!chat_template.empty()) config.chat_templates = {{"default", chat_template}};
  return Finish(*std::move(tokenizer), config, generation_config_json, callers_may_send_templates,
                {{"tokenizer.json", Sha256(tokenizer_json), tokenizer_json}});
}

}  // namespace tessera::services

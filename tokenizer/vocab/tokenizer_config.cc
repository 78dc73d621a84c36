#include "tokenizer/vocab/tokenizer_config.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tokenizer/vocab/json_reader.h"

namespace tessera::tokenizer {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Invalid(const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat("tokenizer_config.json: ", message));
}

// A token: a string, an object with "content", or null.
absl::Status ReadToken(const Json& config, const char* field, std::optional<std::string>& token) {
  const auto found = config.find(field);
  if (found == config.end() || found->is_null()) return absl::OkStatus();
  const Json* text = &*found;
  if (text->is_object()) {
    const auto content = text->find("content");
    if (content == text->end()) return Invalid(absl::StrCat(field, " has no \"content\""));
    text = &*content;
  }
  if (!text->is_string()) return Invalid(absl::StrCat(field, " is not a string"));
  token = text->get<std::string>();
  return absl::OkStatus();
}

absl::Status ReadFlag(const Json& config, const char* field, std::optional<bool>& flag) {
  const auto found = config.find(field);
  if (found == config.end() || found->is_null()) return absl::OkStatus();
  if (!found->is_boolean()) return Invalid(absl::StrCat(field, " is not true or false"));
  flag = found->get<bool>();
  return absl::OkStatus();
}

absl::Status AddTemplate(const std::string& name, const Json& text, TokenizerConfig& config) {
  if (!text.is_string()) return Invalid(absl::StrCat("chat_template \"", name, "\" is not text"));
  NamedTemplate named{name, text.get<std::string>()};
  if (named.text.size() > kChatTemplateBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("tokenizer_config.json: chat_template \"", name, "\" has ", named.text.size(),
                     " bytes; at most ", kChatTemplateBytesMax, " are supported"));
  }
  config.chat_templates.push_back(std::move(named));
  return absl::OkStatus();
}

absl::Status ReadTemplates(const Json& value, TokenizerConfig& config) {
  if (value.is_null()) return absl::OkStatus();
  if (!value.is_array()) return AddTemplate("default", value, config);
  if (value.size() > kChatTemplatesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "tokenizer_config.json: chat_template lists more than ", kChatTemplatesMax, " templates"));
  }
  for (const Json& item : value) {
    const auto name = item.is_object() ? item.find("name") : item.end();
    const auto text = item.is_object() ? item.find("template") : item.end();
    if (!item.is_object() || name == item.end() || !name->is_string() || text == item.end()) {
      return Invalid("chat_template lists an element without \"name\" and \"template\"");
    }
    if (absl::Status status = AddTemplate(name->get<std::string>(), *text, config); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

const std::string* TokenizerConfig::ChatTemplate(std::string_view name) const {
  for (const NamedTemplate& named : chat_templates) {
    if (named.name == name) return &named.text;
  }
  return nullptr;
}

absl::StatusOr<TokenizerConfig> ParseTokenizerConfig(std::string_view json) {
  if (json.size() > kConfigBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat("tokenizer_config.json has ", json.size(),
                                                     " bytes; at most ", kConfigBytesMax,
                                                     " are supported"));
  }
  // The reader bounds the nesting, which the tree's own parser does not.
  JsonReader reader(json);
  if (!reader.Skip() || !reader.AtEnd()) return Invalid("is not valid JSON");
  const Json tree = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!tree.is_object()) return Invalid("is not a JSON object");
  TokenizerConfig config;
  absl::Status status = ReadToken(tree, "bos_token", config.bos_token);
  if (status.ok()) status = ReadToken(tree, "eos_token", config.eos_token);
  if (status.ok()) status = ReadToken(tree, "pad_token", config.pad_token);
  if (status.ok()) status = ReadToken(tree, "unk_token", config.unk_token);
  if (status.ok()) status = ReadFlag(tree, "add_bos_token", config.add_bos_token);
  if (status.ok()) status = ReadFlag(tree, "add_eos_token", config.add_eos_token);
  if (!status.ok()) return status;
  if (const auto found = tree.find("chat_template"); found != tree.end()) {
    if (status = ReadTemplates(*found, config); !status.ok()) return status;
  }
  return config;
}

}  // namespace tessera::tokenizer

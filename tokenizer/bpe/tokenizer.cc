#include "tokenizer/bpe/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tokenizer/bpe/byte_level_encoder.h"
#include "tokenizer/detokenizer/stream_decoder.h"
#include "tokenizer/vocab/tokenizer_file.h"
#include "tokenizer/vocab/utf8.h"

namespace tessera::tokenizer {
namespace {

using Json = nlohmann::ordered_json;

// A file of at most `bytes_max` bytes. kNotFound when it is not there.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return absl::NotFoundError(absl::StrCat(path, ": ", error.message()));
  if (size > bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": has ", size, " bytes; the limit is ", bytes_max));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  return text;
}

absl::Status BadTemplate(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("post_processor: ", absl::string_view(what.data(), what.size())));
}

// The ids of one special token of a TemplateProcessing.
absl::Status AppendSpecial(const Json& processor, const Json& item, std::vector<TokenId>& ids) {
  const auto name = item.find("id");
  const auto table = processor.find("special_tokens");
  if (name == item.end() || !name->is_string() || table == processor.end() || !table->is_object() ||
      !table->contains(name->get_ref<const std::string&>())) {
    return BadTemplate("a SpecialToken that special_tokens does not list");
  }
  const Json& entry = (*table)[name->get_ref<const std::string&>()];
  const auto list = entry.is_object() ? entry.find("ids") : entry.end();
  if (!entry.is_object() || list == entry.end() || !list->is_array()) {
    return BadTemplate("a special token without ids");
  }
  for (const Json& id : *list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > kTokenIdMax) {
      return BadTemplate("an id that is no token id");
    }
    ids.push_back(id.get<TokenId>());
  }
  return absl::OkStatus();
}

absl::Status ReadPostProcessor(const Json& processor, std::vector<TokenId>& prefix,
                               std::vector<TokenId>& suffix) {
  if (processor.is_null()) return absl::OkStatus();
  const auto type = processor.find("type");
  const std::string name =
      type != processor.end() && type->is_string() ? type->get<std::string>() : "missing";
  if (name == "ByteLevel") return absl::OkStatus();  // changes offsets only
  if (name == "Sequence") {
    const auto steps = processor.find("processors");
    if (steps == processor.end() || !steps->is_array()) return BadTemplate("processors is missing");
    for (const Json& step : *steps) {
      if (!step.is_object()) return BadTemplate("a processor that is no object");
      if (absl::Status read = ReadPostProcessor(step, prefix, suffix); !read.ok()) return read;
    }
    return absl::OkStatus();
  }
  if (name != "TemplateProcessing") {
    return absl::UnimplementedError(
        absl::StrCat("post_processor: type ", name, " is not supported"));
  }
  const auto single = processor.find("single");
  if (single == processor.end() || !single->is_array()) return BadTemplate("single is missing");
  bool behind = false;
  for (const Json& item : *single) {
    if (item.is_object() && item.contains("Sequence")) {
      if (std::exchange(behind, true)) return BadTemplate("a sequence that is used twice");
    } else if (item.is_object() && item.contains("SpecialToken") &&
               item["SpecialToken"].is_object()) {
      if (absl::Status read =
              AppendSpecial(processor, item["SpecialToken"], behind ? suffix : prefix);
          !read.ok()) {
        return read;
      }
    } else {
      return BadTemplate("an item that is neither Sequence nor SpecialToken");
    }
  }
  return absl::OkStatus();
}

// tokenizer_config.json and chat_template.jinja of a folder; either may be absent.
absl::StatusOr<TokenizerConfig> ReadConfig(const std::filesystem::path& folder) {
  TokenizerConfig config;
  absl::StatusOr<std::string> json =
      ReadFile((folder / "tokenizer_config.json").string(), kConfigBytesMax);
  if (json.ok()) {
    absl::StatusOr<TokenizerConfig> parsed = ParseTokenizerConfig(*json);
    if (!parsed.ok()) return parsed.status();
    config = *std::move(parsed);
  } else if (!absl::IsNotFound(json.status())) {
    return json.status();
  }
  absl::StatusOr<std::string> text =
      ReadFile((folder / "chat_template.jinja").string(), kChatTemplateBytesMax);
  if (!text.ok()) {
    if (absl::IsNotFound(text.status())) return config;
    return text.status();
  }
  // A template in a file of its own wins over the one in the configuration.
  std::erase_if(config.chat_templates,
                [](const NamedTemplate& named) { return named.name == "default"; });
  config.chat_templates.push_back({"default", *std::move(text)});
  return config;
}

}  // namespace

struct Tokenizer::Parts {
  std::unique_ptr<const TextEncoder> encoder;
  TokenTable token_table;
  TokenizerConfig config;
  std::vector<TokenId> prefix_ids, suffix_ids;
};

Tokenizer::Tokenizer(Parts parts)
    : encoder_(std::move(parts.encoder)),
      token_table_(std::move(parts.token_table)),
      config_(std::move(parts.config)),
      prefix_ids_(std::move(parts.prefix_ids)),
      suffix_ids_(std::move(parts.suffix_ids)) {
  if (config_.bos_token.has_value()) bos_id_ = encoder_->Find(*config_.bos_token);
  if (config_.eos_token.has_value()) eos_id_ = encoder_->Find(*config_.eos_token);
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Build(std::string_view tokenizer_json,
                                                                  TokenizerConfig config) {
  absl::StatusOr<TokenizerFile> file = ParseTokenizerFile(tokenizer_json);
  if (!file.ok()) return file.status();
  Parts parts;
  parts.config = std::move(config);
  if (absl::Status read =
          ReadPostProcessor(file->post_processor, parts.prefix_ids, parts.suffix_ids);
      !read.ok()) {
    return read;
  }
  absl::StatusOr<TokenTable> table = ByteLevelTokenTable(*file);
  if (!table.ok()) return table.status();
  parts.token_table = *std::move(table);
  absl::StatusOr<std::unique_ptr<const ByteLevelEncoder>> encoder = ByteLevelEncoder::Create(*file);
  if (!encoder.ok()) return encoder.status();
  parts.encoder = *std::move(encoder);
  return std::unique_ptr<const Tokenizer>(new Tokenizer(std::move(parts)));
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::FromJson(
    std::string_view tokenizer_json, std::string_view tokenizer_config_json) {
  TokenizerConfig config;
  if (!tokenizer_config_json.empty()) {
    absl::StatusOr<TokenizerConfig> parsed = ParseTokenizerConfig(tokenizer_config_json);
    if (!parsed.ok()) return parsed.status();
    config = *std::move(parsed);
  }
  return Build(tokenizer_json, std::move(config));
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Load(const std::string& path) {
  std::error_code error;
  const bool directory = std::filesystem::is_directory(path, error);
  const std::filesystem::path folder =
      directory ? std::filesystem::path(path) : std::filesystem::path(path).parent_path();
  const std::string file = directory ? (folder / "tokenizer.json").string() : path;
  if (std::filesystem::path(file).extension() == ".model") {
    return absl::UnimplementedError(
        absl::StrCat(file, ": sentencepiece models are not supported yet"));
  }
  const absl::StatusOr<std::string> json = ReadFile(file, kTokenizerBytesMax);
  if (!json.ok()) return json.status();
  absl::StatusOr<TokenizerConfig> config = ReadConfig(folder);
  if (!config.ok()) return config.status();
  absl::StatusOr<std::unique_ptr<const Tokenizer>> tokenizer = Build(*json, *std::move(config));
  if (!tokenizer.ok()) {
    return absl::Status(tokenizer.status().code(),
                        absl::StrCat(file, ": ", tokenizer.status().message()));
  }
  return tokenizer;
}

absl::Status Tokenizer::EncodeTo(std::string_view text, const EncodeOptions& options,
                                 std::vector<TokenId>& ids, std::vector<TokenSpan>* spans) const {
  if (text.size() > kTextBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the text has ", text.size(), " bytes; the limit is ", kTextBytesMax));
  }
  if (const size_t at = FindInvalidUtf8(text); at != std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("the text is not UTF-8 at byte ", at));
  }
  const size_t ids_before = ids.size();
  const size_t spans_before = spans == nullptr ? 0 : spans->size();
  const auto add = [&](const std::vector<TokenId>& special, uint32_t at) {
    if (!options.add_special_tokens) return;
    ids.insert(ids.end(), special.begin(), special.end());
    if (spans != nullptr) spans->insert(spans->end(), special.size(), TokenSpan{at, at});
  };
  add(prefix_ids_, 0);
  if (absl::Status encoded = encoder_->Encode(text, options.added_tokens, ids, spans);
      !encoded.ok()) {
    ids.resize(ids_before);
    if (spans != nullptr) spans->resize(spans_before);
    return encoded;
  }
  add(suffix_ids_, static_cast<uint32_t>(text.size()));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::Encode(std::string_view text,
                                                       const EncodeOptions& options) const {
  std::vector<TokenId> ids;
  if (absl::Status encoded = EncodeTo(text, options, ids); !encoded.ok()) return encoded;
  return ids;
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::EncodeSegments(absl::Span<const Segment> segments,
                                                               bool add_special_tokens) const {
  size_t bytes = 0;
  for (const Segment& segment : segments) bytes += segment.text.size();
  if (bytes > kTextBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the text has ", bytes, " bytes; the limit is ", kTextBytesMax));
  }
  std::vector<TokenId> ids;
  if (add_special_tokens) ids = prefix_ids_;
  for (const Segment& segment : segments) {
    if (absl::Status encoded = EncodeTo(segment.text, {.added_tokens = segment.added_tokens}, ids);
        !encoded.ok()) {
      return encoded;
    }
  }
  if (add_special_tokens) ids.insert(ids.end(), suffix_ids_.begin(), suffix_ids_.end());
  return ids;
}

std::string Tokenizer::Decode(absl::Span<const TokenId> ids, bool skip_special_tokens) const {
  StreamDecoder decoder(token_table_, {.skip_special_tokens = skip_special_tokens});
  std::string text;
  for (const TokenId id : ids) text += decoder.Append(id);
  return text + decoder.Finish();
}

std::optional<TokenId> Tokenizer::TokenToId(std::string_view token) const {
  return encoder_->Find(token);
}

}  // namespace tessera::tokenizer

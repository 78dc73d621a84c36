#include "tokenizer/vocab/tokenizer_file.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tokenizer/vocab/json_reader.h"

namespace tessera::tokenizer {
namespace {

using Json = nlohmann::ordered_json;
using Kind = JsonReader::Kind;

absl::Status Invalid(const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat("tokenizer.json: ", message));
}

absl::Status TooMuch(const std::string& message) {
  return absl::ResourceExhaustedError(absl::StrCat("tokenizer.json: ", message));
}

absl::Status InFile(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("tokenizer.json: ", status.message()));
}

// The text of the parts of "model", which may come in any order.
struct ModelText {
  std::string type;
  std::string_view vocab;
  std::string_view merges;
  std::optional<std::string> unk_token;
  std::optional<uint32_t> unk_id;
};

absl::Status ReadOptionalBool(JsonReader& reader, bool& value) {
  if (reader.Peek() == Kind::kNull) {
    reader.Skip();
  } else {
    reader.ReadBool(value);
  }
  return reader.status();
}

// null and "" mean none; anything else would change which strings a merge joins.
absl::Status RefuseAffix(JsonReader& reader, const std::string& key) {
  std::string affix;
  if (reader.Peek() == Kind::kNull) {
    reader.Skip();
  } else {
    reader.ReadString(affix);
  }
  if (!affix.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("model.", key, " \"", affix, "\" is not supported"));
  }
  return reader.status();
}

absl::Status RefuseDropout(JsonReader& reader) {
  double dropout = 0;
  if (reader.Peek() == Kind::kNull) {
    reader.Skip();
  } else {
    reader.ReadNumber(dropout);
  }
  if (dropout != 0) {
    return absl::UnimplementedError("model.dropout is not supported: ids would be random");
  }
  return reader.status();
}

absl::Status ReadModelField(JsonReader& reader, const std::string& key, TokenizerModel& model,
                            ModelText& text) {
  if (key == "type") {
    reader.ReadString(text.type);
  } else if (key == "vocab") {
    reader.Skip(&text.vocab);
  } else if (key == "merges") {
    reader.Skip(&text.merges);
  } else if (key == "byte_fallback") {
    return ReadOptionalBool(reader, model.byte_fallback);
  } else if (key == "fuse_unk") {
    return ReadOptionalBool(reader, model.fuse_unk);
  } else if (key == "ignore_merges") {
    return ReadOptionalBool(reader, model.ignore_merges);
  } else if (key == "unk_token" && reader.Peek() != Kind::kNull) {
    text.unk_token.emplace();
    reader.ReadString(*text.unk_token);
  } else if (key == "unk_id" && reader.Peek() != Kind::kNull) {
    uint64_t id = 0;
    reader.ReadUnsigned(kTokenIdMax, id);
    text.unk_id = static_cast<uint32_t>(id);
  } else if (key == "continuing_subword_prefix" || key == "end_of_word_suffix") {
    return RefuseAffix(reader, key);
  } else if (key == "dropout") {
    return RefuseDropout(reader);
  } else {
    reader.Skip();
  }
  return reader.status();
}

absl::Status ParseBpeVocab(std::string_view json, StringIndex& vocab) {
  JsonReader reader(json);
  // An entry of a large file is some 15 bytes of JSON and 7 of text.
  vocab.Reserve(std::min<size_t>(json.size() / 14, kTokenIdMax), json.size() / 2);
  std::string text;
  if (!reader.EnterObject()) return reader.status();
  while (reader.NextKey(text)) {
    uint64_t id;
    if (!reader.ReadUnsigned(kTokenIdMax, id)) {
      return Invalid(absl::StrCat("model.vocab: ", reader.status().message()));
    }
    if (!vocab.Add(static_cast<uint32_t>(id), text)) {
      return Invalid(absl::StrCat("model.vocab[\"", text, "\"]: this string or its id ", id,
                                  " stands there twice"));
    }
  }
  return reader.status();
}

// One element of "merges": "left right", or ["left", "right"].
absl::Status ReadMerge(JsonReader& reader, std::string& left, std::string& right, size_t index) {
  if (reader.Peek() == Kind::kArray) {
    int parts = 0;
    reader.EnterArray();
    while (reader.NextElement()) {
      if (parts == 2) return Invalid(absl::StrCat("model.merges[", index, "] has a third part"));
      reader.ReadString(parts == 0 ? left : right);
      ++parts;
    }
    if (reader.ok() && parts != 2) {
      return Invalid(absl::StrCat("model.merges[", index, "] has ", parts, " parts instead of 2"));
    }
    return reader.status();
  }
  if (!reader.ReadString(left)) return reader.status();
  const size_t space = left.find(' ');
  if (space == std::string::npos || left.find(' ', space + 1) != std::string::npos) {
    return Invalid(absl::StrCat("model.merges[", index, "] \"", left,
                                "\" is not two strings with one space between them"));
  }
  right.assign(left, space + 1);
  left.resize(space);
  return absl::OkStatus();
}

absl::Status ParseMerges(std::string_view json, TokenizerModel& model) {
  JsonReader reader(json);
  std::string left, right, joined;
  if (!reader.EnterArray()) return reader.status();
  model.merges.reserve(std::min(json.size() / 16, kMergesMax));
  while (reader.NextElement()) {
    const size_t index = model.merges.size();
    if (index == kMergesMax) {
      return TooMuch(absl::StrCat("model.merges has more than ", kMergesMax, " entries"));
    }
    if (const absl::Status status = ReadMerge(reader, left, right, index); !status.ok()) {
      return status;
    }
    joined.assign(left).append(right);
    const auto left_id = model.vocab.Find(left);
    const auto right_id = model.vocab.Find(right);
    const auto joined_id = model.vocab.Find(joined);
    if (!left_id || !right_id || !joined_id) {
      const std::string& missing = !left_id ? left : !right_id ? right : joined;
      return Invalid(absl::StrCat("model.merges[", index, "] needs \"", missing,
                                  "\", which is not in model.vocab"));
    }
    model.merges.push_back({*left_id, *right_id, *joined_id});
  }
  return reader.status();
}

// [["piece", score], ...]; the id is the index. A repeated piece belongs to its last index in the
// reference, which no real file has: refused.
absl::Status ParseUnigramVocab(std::string_view json, TokenizerModel& model) {
  JsonReader reader(json);
  std::string piece;
  if (!reader.EnterArray()) return reader.status();
  while (reader.NextElement()) {
    const size_t id = model.scores.size();
    if (id > kTokenIdMax) return TooMuch("model.vocab has too many entries");
    double score = 0;
    bool is_pair = reader.EnterArray() && reader.NextElement() && reader.ReadString(piece);
    is_pair = is_pair && reader.NextElement() && reader.ReadNumber(score);
    if (!is_pair || reader.NextElement() || !reader.ok()) {
      return Invalid(absl::StrCat("model.vocab[", id, "] is not a piece with its score"));
    }
    if (!model.vocab.Add(static_cast<uint32_t>(id), piece)) {
      return Invalid(
          absl::StrCat("model.vocab[", id, "]: the piece \"", piece, "\" stands there twice"));
    }
    model.scores.push_back(score);
  }
  return reader.status();
}

absl::Status ResolveModelType(const ModelText& text, ModelType& type) {
  std::string name = text.type;
  if (name.empty()) {
    // Old files leave the type out: only BPE has merges, and only Unigram lists its vocabulary.
    name = !text.merges.empty()                               ? "BPE"
           : !text.vocab.empty() && text.vocab.front() == '[' ? "Unigram"
                                                              : "";
  }
  if (name == "BPE") {
    type = ModelType::kBpe;
    return absl::OkStatus();
  }
  if (name == "Unigram") {
    type = ModelType::kUnigram;
    return absl::OkStatus();
  }
  if (name == "WordPiece" || name == "WordLevel") {
    return absl::UnimplementedError(
        absl::StrCat("tokenizer.json: model.type \"", name, "\" is not supported"));
  }
  return Invalid(
      absl::StrCat("model.type \"", name, "\" is unknown; BPE and Unigram are supported"));
}

absl::Status ParseModel(JsonReader& reader, TokenizerModel& model) {
  ModelText text;
  std::string key;
  if (!reader.EnterObject()) return InFile(reader.status());
  while (reader.NextKey(key)) {
    if (const absl::Status status = ReadModelField(reader, key, model, text); !status.ok()) {
      return InFile(status);
    }
  }
  if (!reader.ok()) return InFile(reader.status());
  if (const absl::Status status = ResolveModelType(text, model.type); !status.ok()) return status;
  if (text.vocab.empty()) return Invalid("model.vocab is missing");
  if (model.type == ModelType::kUnigram) {
    if (const absl::Status status = ParseUnigramVocab(text.vocab, model); !status.ok()) {
      return status;
    }
    if (text.unk_id && *text.unk_id >= model.scores.size()) {
      return Invalid(absl::StrCat("model.unk_id ", *text.unk_id, " is not in model.vocab"));
    }
    model.unk_id = text.unk_id;
    return absl::OkStatus();
  }
  if (const absl::Status status = ParseBpeVocab(text.vocab, model.vocab); !status.ok()) {
    return status;
  }
  if (text.merges.empty()) return Invalid("model.merges is missing");
  if (text.unk_token) {
    model.unk_id = model.vocab.Find(*text.unk_token);
    if (!model.unk_id) {
      return Invalid(
          absl::StrCat("model.unk_token \"", *text.unk_token, "\" is not in model.vocab"));
    }
  }
  return ParseMerges(text.merges, model);
}

absl::Status ParseAddedToken(JsonReader& reader, AddedToken& token, bool& has_id) {
  std::string key;
  has_id = false;
  // As the library does when the field is missing: a special token is not normalized.
  std::optional<bool> normalized;
  if (!reader.EnterObject()) return reader.status();
  while (reader.NextKey(key)) {
    if (key == "id") {
      uint64_t id;
      has_id = reader.ReadUnsigned(kTokenIdMax, id);
      if (has_id) token.id = static_cast<uint32_t>(id);
    } else if (key == "content") {
      reader.ReadString(token.content);
    } else if (key == "special") {
      reader.ReadBool(token.special);
    } else if (key == "normalized") {
      normalized.emplace();
      reader.ReadBool(*normalized);
    } else if (key == "single_word") {
      reader.ReadBool(token.single_word);
    } else if (key == "lstrip") {
      reader.ReadBool(token.lstrip);
    } else if (key == "rstrip") {
      reader.ReadBool(token.rstrip);
    } else {
      reader.Skip();
    }
  }
  token.normalized = normalized.value_or(!token.special);
  return reader.status();
}

absl::Status ParseAddedTokens(JsonReader& reader, std::vector<AddedToken>& tokens) {
  if (reader.Peek() == Kind::kNull) {
    reader.Skip();
    return absl::OkStatus();
  }
  if (!reader.EnterArray()) return InFile(reader.status());
  while (reader.NextElement()) {
    const std::string where = absl::StrCat("added_tokens[", tokens.size(), "]");
    if (tokens.size() == kAddedTokensMax) {
      return TooMuch(absl::StrCat("added_tokens has more than ", kAddedTokensMax, " entries"));
    }
    AddedToken token;
    bool has_id;
    if (const absl::Status status = ParseAddedToken(reader, token, has_id); !status.ok()) {
      return Invalid(absl::StrCat(where, ": ", status.message()));
    }
    if (!has_id) return Invalid(absl::StrCat(where, " has no id"));
    if (token.content.size() > kAddedTokenBytesMax) {
      return TooMuch(absl::StrCat(where, ".content has ", token.content.size(), " bytes; at most ",
                                  kAddedTokenBytesMax, " are supported"));
    }
    tokens.push_back(std::move(token));
  }
  return reader.ok() ? absl::OkStatus() : InFile(reader.status());
}

absl::Status ParseComponent(JsonReader& reader, const std::string& name, Json& component) {
  std::string_view raw;
  if (!reader.Skip(&raw)) return Invalid(absl::StrCat(name, ": ", reader.status().message()));
  if (raw.size() > kComponentBytesMax) {
    return TooMuch(absl::StrCat(name, " has ", raw.size(), " bytes; at most ", kComponentBytesMax,
                                " are supported"));
  }
  component = Json::parse(raw, nullptr, /*allow_exceptions=*/false);
  if (component.is_discarded()) return Invalid(absl::StrCat(name, " is not valid JSON"));
  if (component.is_null()) return absl::OkStatus();
  const auto type = component.is_object() ? component.find("type") : component.end();
  if (!component.is_object() || type == component.end() || !type->is_string()) {
    return Invalid(absl::StrCat(name, " is not null and has no string \"type\""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerFile> ParseTokenizerFile(std::string_view json) {
  if (json.size() > kTokenizerBytesMax) {
    return TooMuch(absl::StrCat("has ", json.size(), " bytes; at most ", kTokenizerBytesMax,
                                " are supported"));
  }
  TokenizerFile file;
  JsonReader reader(json);
  std::string key;
  bool has_model = false;
  if (!reader.EnterObject()) return InFile(reader.status());
  while (reader.NextKey(key)) {
    absl::Status status;
    if (key == "model") {
      if (has_model) return Invalid("model stands there twice");
      has_model = true;
      status = ParseModel(reader, file.model);
    } else if (key == "added_tokens") {
      status = ParseAddedTokens(reader, file.added_tokens);
    } else if (key == "normalizer") {
      status = ParseComponent(reader, key, file.normalizer);
    } else if (key == "pre_tokenizer") {
      status = ParseComponent(reader, key, file.pre_tokenizer);
    } else if (key == "post_processor") {
      status = ParseComponent(reader, key, file.post_processor);
    } else if (key == "decoder") {
      status = ParseComponent(reader, key, file.decoder);
    } else {
      reader.Skip();
    }
    if (!status.ok()) return status;
  }
  if (!reader.ok()) return InFile(reader.status());
  if (!reader.AtEnd()) return Invalid("there is text behind the object");
  if (!has_model) return Invalid("model is missing");
  return file;
}

}  // namespace tessera::tokenizer

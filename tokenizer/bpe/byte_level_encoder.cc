#include "tokenizer/bpe/byte_level_encoder.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/vocab/utf8.h"

namespace tessera::tokenizer {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kNoId = 0xFFFFFFFF;

absl::Status Unsupported(std::string_view field, const std::string& what) {
  return absl::UnimplementedError(
      absl::StrCat(absl::string_view(field.data(), field.size()), ": ", what, " is not supported"));
}

std::string TypeOf(const Json& component) {
  const auto type = component.is_object() ? component.find("type") : component.end();
  return component.is_object() && type != component.end() && type->is_string()
             ? type->get<std::string>()
             : "null";
}

bool Flag(const Json& component, const char* name, bool otherwise) {
  const auto found = component.find(name);
  return found == component.end() || !found->is_boolean() ? otherwise : found->get<bool>();
}

// The spelling of one byte in the byte-level alphabet: the inverse of BytesOfSpelling.
std::array<std::string, 256> ByteSpellings() {
  std::array<std::string, 256> spellings;
  char32_t next = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    AppendUtf8(itself ? static_cast<char32_t>(b) : next++, spellings[b]);
  }
  return spellings;
}

}  // namespace

absl::StatusOr<ByteLevelEncoder::Shape> ByteLevelEncoder::ReadShape(const Json& pre_tokenizer) {
  std::vector<const Json*> steps;
  if (TypeOf(pre_tokenizer) == "Sequence") {
    const auto list = pre_tokenizer.find("pretokenizers");
    if (list == pre_tokenizer.end() || !list->is_array()) {
      return absl::InvalidArgumentError("pre_tokenizer.pretokenizers: is missing; give a list");
    }
    for (const Json& step : *list) steps.push_back(&step);
  } else {
    steps.push_back(&pre_tokenizer);
  }
  Shape shape;
  bool byte_level = false;
  for (const Json* step : steps) {
    const std::string type = TypeOf(*step);
    if (byte_level) return Unsupported("pre_tokenizer", "a step behind ByteLevel");
    if (type == "ByteLevel") {
      byte_level = true;
      if (Flag(*step, "add_prefix_space", true)) {
        return Unsupported("pre_tokenizer.add_prefix_space", "true");
      }
      if (Flag(*step, "use_regex", true)) {
        if (shape.pattern.has_value()) return Unsupported("pre_tokenizer", "two patterns");
        shape.pattern = PatternFamily::kGpt2;
      }
      continue;
    }
    if (type != "Split") return Unsupported("pre_tokenizer", absl::StrCat("type ", type));
    const auto pattern = step->find("pattern");
    const bool regex = pattern != step->end() && pattern->is_object() &&
                       pattern->contains("Regex") && (*pattern)["Regex"].is_string();
    const auto behavior = step->find("behavior");
    const std::string behavior_name =
        behavior != step->end() && behavior->is_string() ? behavior->get<std::string>() : "missing";
    const bool inverted = Flag(*step, "invert", false);
    // Over a pattern that tiles the text the two forms are one.
    if (!(behavior_name == "Isolated" && !inverted) && !(behavior_name == "Removed" && inverted)) {
      return Unsupported("pre_tokenizer.behavior", behavior_name);
    }
    if (!regex) return Unsupported("pre_tokenizer.pattern", "a pattern that is no Regex");
    if (shape.pattern.has_value()) return Unsupported("pre_tokenizer", "two patterns");
    const std::string text = (*pattern)["Regex"].get<std::string>();
    shape.pattern = FamilyOfPattern(text);
    const bool tiles = shape.pattern.has_value() && *shape.pattern != PatternFamily::kDigits3 &&
                       *shape.pattern != PatternFamily::kCjkRun &&
                       *shape.pattern != PatternFamily::kDeepseekV3;
    if (!tiles) return Unsupported("pre_tokenizer.pattern", absl::StrCat("the pattern ", text));
  }
  if (!byte_level) return Unsupported("pre_tokenizer", "a tokenizer without ByteLevel");
  return shape;
}

absl::StatusOr<std::unique_ptr<const ByteLevelEncoder>> ByteLevelEncoder::Create(
    TokenizerFile& file) {
  if (file.model.type != ModelType::kBpe) return Unsupported("model.type", "Unigram");
  if (file.model.byte_fallback) return Unsupported("model.byte_fallback", "true");
  if (!file.normalizer.is_null()) {
    return Unsupported("normalizer", absl::StrCat("type ", TypeOf(file.normalizer)));
  }
  absl::StatusOr<Shape> shape = ReadShape(file.pre_tokenizer);
  if (!shape.ok()) return shape.status();
  return std::unique_ptr<const ByteLevelEncoder>(new ByteLevelEncoder(file, *shape));
}

ByteLevelEncoder::Matchers ByteLevelEncoder::MatchersOf(const std::vector<AddedToken>& tokens,
                                                        bool with_special) {
  std::vector<std::string> raw, normalized;
  for (const AddedToken& token : tokens) {
    const bool wanted = with_special || !token.special;
    raw.push_back(wanted && !token.normalized ? token.content : "");
    normalized.push_back(wanted && token.normalized ? token.content : "");
  }
  return {AddedTokenMatcher(tokens, raw), AddedTokenMatcher(tokens, normalized)};
}

ByteLevelEncoder::ByteLevelEncoder(TokenizerFile& file, const Shape& shape)
    : added_tokens_(file.added_tokens),
      vocab_(std::move(file.model.vocab)),
      merges_(file.model.merges),
      unk_id_(file.model.unk_id),
      fuse_unk_(file.model.fuse_unk),
      ignore_merges_(file.model.ignore_merges),
      shape_(shape),
      all_(MatchersOf(added_tokens_, /*with_special=*/true)),
      ordinary_(MatchersOf(added_tokens_, /*with_special=*/false)) {
  const std::array<std::string, 256> spellings = ByteSpellings();
  for (int b = 0; b < 256; ++b) byte_ids_[b] = vocab_.Find(spellings[b]).value_or(kNoId);
  token_bytes_.assign(vocab_.id_end(), 0);
  std::string bytes;
  for (uint32_t id = 0; id < vocab_.id_end(); ++id) {
    bytes.clear();
    if (!vocab_.Has(id) || !BytesOfSpelling(vocab_.Text(id), bytes)) continue;
    token_bytes_[id] = static_cast<uint32_t>(bytes.size());
    if (ignore_merges_) bytes_.Add(id, bytes);
  }
}

std::optional<TokenId> ByteLevelEncoder::Find(std::string_view token) const {
  for (const AddedToken& added : added_tokens_) {
    if (added.content == token) return added.id;
  }
  return vocab_.Find(token);
}

absl::Status ByteLevelEncoder::Encode(std::string_view text, AddedTokens added_tokens,
                                      std::vector<TokenId>& ids,
                                      std::vector<TokenSpan>* spans) const {
  const uint32_t size = static_cast<uint32_t>(text.size());
  if (added_tokens == AddedTokens::kAllAsText) {
    EncodeGap(text, 0, size, ids, spans);
    return absl::OkStatus();
  }
  const Matchers& matchers = added_tokens == AddedTokens::kParse ? all_ : ordinary_;
  std::vector<TextPart> parts, inner;
  matchers.raw.Split(text, 0, size, parts);
  const auto take = [&](const TextPart& part) {
    if (part.token_id == TextPart::kGap) return EncodeGap(text, part.begin, part.end, ids, spans);
    ids.push_back(part.token_id);
    if (spans != nullptr) spans->push_back({part.begin, part.end});
  };
  for (const TextPart& part : parts) {
    if (part.token_id != TextPart::kGap || matchers.normalized.empty()) {
      take(part);
      continue;
    }
    inner.clear();
    matchers.normalized.Split(text, part.begin, part.end, inner);
    for (const TextPart& piece : inner) take(piece);
  }
  return absl::OkStatus();
}

void ByteLevelEncoder::EncodeGap(std::string_view text, uint32_t begin, uint32_t end,
                                 std::vector<TokenId>& ids, std::vector<TokenSpan>* spans) const {
  if (begin == end) return;
  if (!shape_.pattern.has_value()) return EncodePiece(text, begin, end, ids, spans);
  // The gap is a text of its own: the pattern must not look beyond it.
  const std::string_view gap = text.substr(begin, end - begin);
  constexpr size_t kPiecesAtOnce = 256;
  uint32_t ends[kPiecesAtOnce];
  size_t pos = 0;
  while (pos < gap.size()) {
    const size_t count = ScanPattern(*shape_.pattern, gap, pos, ends, kPiecesAtOnce);
    for (size_t i = 0; i < count; ++i) {
      EncodePiece(text, begin + static_cast<uint32_t>(pos), begin + ends[i], ids, spans);
      pos = ends[i];
    }
    if (count == 0) break;
  }
}

void ByteLevelEncoder::EncodePiece(std::string_view text, uint32_t begin, uint32_t end,
                                   std::vector<TokenId>& ids, std::vector<TokenSpan>* spans) const {
  const std::string_view piece = text.substr(begin, end - begin);
  if (ignore_merges_) {
    if (const std::optional<uint32_t> id = bytes_.Find(piece)) {
      ids.push_back(*id);
      if (spans != nullptr) spans->push_back({begin, end});
      return;
    }
  }
  // Kept between calls of a thread, so that a piece costs no allocation.
  thread_local std::vector<uint32_t> symbols;
  symbols.clear();
  bool known = true;
  for (const char c : piece) {
    symbols.push_back(byte_ids_[static_cast<uint8_t>(c)]);
    known = known && symbols.back() != kNoId;
  }
  merges_.Apply(symbols);
  uint32_t at = begin;
  for (const uint32_t id : symbols) {
    const bool is_unknown = id == kNoId;
    const uint32_t size = is_unknown ? 1 : token_bytes_[id];
    const TokenSpan span = {at, at + size};
    at += size;
    if (!is_unknown) {
      ids.push_back(id);
    } else if (!unk_id_.has_value()) {
      continue;  // neither a byte of the vocabulary nor an unknown token: it vanishes
    } else if (fuse_unk_ && !known && !ids.empty() && ids.back() == *unk_id_ && at > begin + 1) {
      if (spans != nullptr) spans->back().end = span.end;
      continue;
    } else {
      ids.push_back(*unk_id_);
    }
    if (spans != nullptr) spans->push_back(span);
  }
}

absl::StatusOr<TokenTable> ByteLevelTokenTable(const TokenizerFile& file) {
  if (TypeOf(file.decoder) != "ByteLevel") {
    return Unsupported("decoder", absl::StrCat("type ", TypeOf(file.decoder)));
  }
  size_t id_end = file.model.vocab.id_end();
  for (const AddedToken& token : file.added_tokens) id_end = std::max<size_t>(id_end, token.id + 1);
  std::vector<const AddedToken*> added(id_end, nullptr);
  for (const AddedToken& token : file.added_tokens) added[token.id] = &token;
  TokenTable table;
  std::string bytes;
  for (uint32_t id = 0; id < id_end; ++id) {
    if (added[id] == nullptr && !file.model.vocab.Has(id)) {
      table.Add("", TokenTable::kUnknown);
      continue;
    }
    const std::string_view spelling =
        added[id] != nullptr ? std::string_view(added[id]->content) : file.model.vocab.Text(id);
    bytes.clear();
    // A token with a character outside the byte alphabet stands for itself.
    const std::string_view shown =
        BytesOfSpelling(spelling, bytes) ? std::string_view(bytes) : spelling;
    const bool special = added[id] != nullptr && added[id]->special;
    table.Add(shown,
              static_cast<uint8_t>(TokenTable::kText | (special ? TokenTable::kSpecial : 0)));
  }
  return table;
}

}  // namespace tessera::tokenizer

#include "tokenizer/detokenizer/stream_decoder.h"

#include <algorithm>
#include <utility>

#include "tokenizer/vocab/utf8.h"

namespace tessera::tokenizer {

StreamDecoder::StreamDecoder(const TokenTable& table, StreamDecoderOptions options)
    : table_(&table),
      options_(std::move(options)),
      spaces_to_strip_(table.rules().strip_spaces_left) {}

std::string StreamDecoder::Append(TokenId id) {
  std::string text;
  Append(id, text);
  return text;
}

std::string StreamDecoder::Finish() {
  std::string text;
  Finish(text);
  return text;
}

bool StreamDecoder::IsDropped(TokenId id, uint8_t kind) const {
  if (kind == TokenTable::kUnknown) return true;
  if (options_.skip_special_tokens && (kind & TokenTable::kSpecial) != 0) return true;
  return std::find(options_.drop_ids.begin(), options_.drop_ids.end(), id) !=
         options_.drop_ids.end();
}

void StreamDecoder::Append(TokenId id, std::string& text) {
  const uint8_t kind = table_->kind(id);
  // A dropped token does not separate the bytes around it.
  if (IsDropped(id, kind)) return;
  const DecodeRules& rules = table_->rules();
  const std::string_view bytes = table_->Bytes(id);
  if (!rules.byte_fallback) {
    if (rules.join_with_spaces && !first_token_) AppendBytes(" ", text);
    first_token_ = false;
    AppendBytes(bytes, text);
    return;
  }
  if ((kind & TokenTable::kByte) != 0) {
    AppendRunByte(bytes[0], text);
    return;
  }
  EndRun(text);
  if (first_token_ && rules.drop_first_metaspace && (kind & TokenTable::kMetaspace) != 0) {
    std::string kept(bytes);
    std::erase(kept, ' ');
    Emit(kept, text);
  } else {
    Emit(bytes, text);
  }
  first_token_ = false;
}

void StreamDecoder::Finish(std::string& text) {
  if (table_->rules().byte_fallback) {
    EndRun(text);
  } else if (!pending_.empty()) {
    // Pending bytes are the begin of one code point, so they are one broken part.
    pending_.clear();
    Emit(kReplacementCharacter, text);
  }
  first_token_ = true;
  spaces_to_strip_ = table_->rules().strip_spaces_left;
}

void StreamDecoder::AppendBytes(std::string_view bytes, std::string& text) {
  std::string joined;
  if (!pending_.empty()) {
    joined = std::move(pending_);
    pending_.clear();
    joined.append(bytes);
    bytes = joined;
  }
  size_t valid = 0;  // length of the valid text at the front of `bytes`
  while (valid < bytes.size()) {
    const Utf8Front front = ReadUtf8Front(bytes.substr(valid));
    if (front.state == Utf8Front::kWhole) {
      valid += front.bytes;
      continue;
    }
    Emit(bytes.substr(0, valid), text);
    bytes.remove_prefix(valid);
    valid = 0;
    if (front.state == Utf8Front::kIncomplete) {
      pending_ = std::string(bytes);
      return;
    }
    Emit(kReplacementCharacter, text);
    bytes.remove_prefix(front.bytes);
  }
  Emit(bytes, text);
}

void StreamDecoder::AppendRunByte(char byte, std::string& text) {
  first_token_ = false;
  if (run_broken_) {
    Emit(kReplacementCharacter, text);
    return;
  }
  pending_.push_back(byte);
  // Where the last code point of the run begins; everything before it is valid.
  size_t last = pending_.size() - 1;
  while (last > 0 && pending_.size() - last < 4 &&
         (static_cast<uint8_t>(pending_[last]) & 0xC0) == 0x80) {
    --last;
  }
  const Utf8Front front = ReadUtf8Front(std::string_view(pending_).substr(last));
  const bool ends_whole = front.state == Utf8Front::kWhole && last + front.bytes == pending_.size();
  if (!ends_whole && front.state != Utf8Front::kIncomplete) {
    for (size_t i = 0; i < pending_.size(); ++i) Emit(kReplacementCharacter, text);
    pending_.clear();
    run_broken_ = true;
  } else if (ends_whole && pending_.size() >= kByteRunBytesMax - 3) {
    Emit(pending_, text);
    pending_.clear();
  }
}

void StreamDecoder::EndRun(std::string& text) {
  run_broken_ = false;
  if (pending_.empty()) return;
  if (FindInvalidUtf8(pending_) == std::string_view::npos) {
    Emit(pending_, text);
  } else {
    for (size_t i = 0; i < pending_.size(); ++i) Emit(kReplacementCharacter, text);
  }
  pending_.clear();
}

void StreamDecoder::Emit(std::string_view valid_text, std::string& text) {
  if (spaces_to_strip_ > 0) {
    while (spaces_to_strip_ > 0 && !valid_text.empty()) {
      if (valid_text.front() == ' ') {
        valid_text.remove_prefix(1);
        --spaces_to_strip_;
      } else {
        spaces_to_strip_ = 0;
      }
    }
  }
  text.append(valid_text);
}

}  // namespace tessera::tokenizer

#include "services/parser/formats/text_buffer.h"

namespace tessera::parser {
namespace {

// Taken text is dropped from memory in steps of this size, so that a token costs no move of what is
// held back.
constexpr size_t kCompactBytes = 16 << 10;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool IsAscii(std::string_view text) {
  unsigned char any = 0;
  for (const char c : text) any |= static_cast<unsigned char>(c);
  return any < 0x80;
}

// Bytes of the sequence that `lead` begins; 0 if no sequence begins with it.
size_t SequenceBytes(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// May `byte` be the byte at `index` of the sequence that `lead` begins? Refuses overlong forms,
// surrogates and code points past U+10FFFF.
bool Continues(unsigned char lead, size_t index, unsigned char byte) {
  if (index == 1) {
    if (lead == 0xE0) return byte >= 0xA0 && byte <= 0xBF;
    if (lead == 0xED) return byte >= 0x80 && byte <= 0x9F;
    if (lead == 0xF0) return byte >= 0x90 && byte <= 0xBF;
    if (lead == 0xF4) return byte >= 0x80 && byte <= 0x8F;
  }
  return byte >= 0x80 && byte <= 0xBF;
}

}  // namespace

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

void TextBuffer::Consume(size_t bytes) {
  begin_ += bytes;
  if (begin_ == data_.size()) {
    base_ += begin_;
    begin_ = 0;
    data_.clear();
  } else if (begin_ >= kCompactBytes && begin_ >= data_.size() - begin_) {
    base_ += begin_;
    data_.erase(0, begin_);
    begin_ = 0;
  }
}

TextBuffer::Scan& TextBuffer::Find(ScanKind kind, uint64_t at) {
  for (Scan& scan : scans_) {
    if (scan.kind == kind && scan.from == at) return scan;
  }
  Scan& scan = scans_[scan_next_];
  scan_next_ = (scan_next_ + 1) % scans_.size();
  scan = Scan{kind, at, at};
  return scan;
}

uint64_t TextBuffer::SkipSpace(uint64_t at) {
  if (at < end() && !IsSpace(From(at).front())) return at;  // the usual case needs no memory
  Scan& scan = Find(ScanKind::kSpace, at);
  while (scan.to < end() && IsSpace(data_[static_cast<size_t>(scan.to - base_)])) ++scan.to;
  return scan.to;
}

uint64_t TextBuffer::NameEnd(uint64_t at) {
  Scan& scan = Find(ScanKind::kName, at);
  const size_t found = From(scan.to).find_first_of(">\n<");
  scan.to = found == std::string_view::npos ? end() : scan.to + found;
  return scan.to;
}

uint64_t TextBuffer::SkipSpaceAndTags(uint64_t at, std::string_view tag) {
  // A chain that has been walked is entered anywhere: behind each tag of it the same question is
  // asked again.
  Scan* scan = nullptr;
  for (Scan& known : scans_) {
    if (known.kind == ScanKind::kTags && known.from <= at && at <= known.to) scan = &known;
  }
  if (scan == nullptr) scan = &Find(ScanKind::kTags, at);
  while (scan->to < end()) {
    if (IsSpace(data_[static_cast<size_t>(scan->to - base_)])) {
      ++scan->to;
    } else if (MatchTag(From(scan->to), tag) == Match::kFull) {
      scan->to += tag.size();
    } else {
      break;
    }
  }
  return scan->to;
}

uint64_t Utf8Intake::Append(std::string_view piece, TextBuffer* buffer) {
  if (pending_.empty() && IsAscii(piece)) {
    buffer->Append(piece);
    return 0;
  }
  uint64_t replaced = 0;
  size_t good = 0;  // [good, i) of `piece` is valid and not yet appended
  size_t i = 0;
  while (i < piece.size()) {
    const unsigned char byte = static_cast<unsigned char>(piece[i]);
    if (!pending_.empty()) {
      const unsigned char lead = static_cast<unsigned char>(pending_[0]);
      if (Continues(lead, pending_.size(), byte)) {
        pending_.push_back(piece[i++]);
        if (pending_.size() == SequenceBytes(lead)) {
          buffer->Append(pending_);
          pending_.clear();
        }
      } else {  // the byte is looked at again, as the beginning of the next sequence
        buffer->Append(kReplacement);
        pending_.clear();
        ++replaced;
      }
      good = i;
      continue;
    }
    const size_t bytes = SequenceBytes(byte);
    if (bytes == 1) {
      ++i;
      continue;
    }
    buffer->Append(piece.substr(good, i - good));
    if (bytes == 0) {
      buffer->Append(kReplacement);
      ++replaced;
    } else {
      pending_.push_back(piece[i]);
    }
    good = ++i;
  }
  if (pending_.empty()) buffer->Append(piece.substr(good, i - good));
  return replaced;
}

uint64_t Utf8Intake::Finish(TextBuffer* buffer) {
  if (pending_.empty()) return 0;
  buffer->Append(kReplacement);
  pending_.clear();
  return 1;
}

}  // namespace tessera::parser

#ifndef TESSERA_SERVICES_PARSER_FORMATS_TEXT_BUFFER_H_
#define TESSERA_SERVICES_PARSER_FORMATS_TEXT_BUFFER_H_

// The text that no state has taken yet, addressed by its offset in the whole output, and the
// questions that every format asks about it. A question that cannot be answered yet is asked again
// when more text has come; the scans below remember how far they have looked, so that asking after
// every byte costs no more than asking once.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::parser {

// Space, tab, CR, LF: what the chat format calls white space.
constexpr bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
std::string_view Trim(std::string_view text);

enum class Match : uint8_t { kNo, kPartial, kFull };

// Does `text` begin with `tag`? kPartial: it may, once it is longer (an empty text too).
inline Match MatchTag(std::string_view text, std::string_view tag) {
  if (text.size() >= tag.size()) {
    return text.substr(0, tag.size()) == tag ? Match::kFull : Match::kNo;
  }
  return tag.substr(0, text.size()) == text ? Match::kPartial : Match::kNo;
}

// How the output ended. `cut`: not by the model's own end of turn, so what is open is incomplete.
struct EndOfText {
  bool ended = false;
  bool cut = false;
};

class TextBuffer {
 public:
  void Append(std::string_view text) { data_.append(text); }
  // Takes the first `bytes` bytes away. REQUIRES: bytes <= Rest().size().
  void Consume(size_t bytes);

  uint64_t begin() const { return base_ + begin_; }
  uint64_t end() const { return base_ + data_.size(); }
  std::string_view Rest() const { return std::string_view(data_).substr(begin_); }
  // REQUIRES: begin() <= at <= end(). The view lives until the next Append or Consume.
  std::string_view From(uint64_t at) const {
    return std::string_view(data_).substr(static_cast<size_t>(at - base_));
  }

  // The first offset from `at` on that is not white space; end() if there is none yet.
  uint64_t SkipSpace(uint64_t at);
  // The first offset from `at` on of '>', newline or '<', which end a name; end() if none yet.
  uint64_t NameEnd(uint64_t at);
  // Skips white space and whole `tag`s: the first offset from `at` on where something else begins.
  uint64_t SkipSpaceAndTags(uint64_t at, std::string_view tag);

 private:
  enum class ScanKind : uint8_t { kNone, kSpace, kName, kTags };
  struct Scan {
    ScanKind kind = ScanKind::kNone;
    uint64_t from = 0;
    uint64_t to = 0;
  };
  Scan& Find(ScanKind kind, uint64_t at);

  std::string data_;
  size_t begin_ = 0;   // index in data_ of the first byte not taken
  uint64_t base_ = 0;  // offset of data_[0]
  // The longest question (the full end of a call) scans four stretches.
  std::array<Scan, 8> scans_;
  size_t scan_next_ = 0;
};

// Puts pieces cut inside code points together and replaces what is not UTF-8 by U+FFFD, so that all
// behind it sees whole code points only.
class Utf8Intake {
 public:
  // Appends to `buffer`; holds back at most three bytes. Returns the sequences it replaced.
  uint64_t Append(std::string_view piece, TextBuffer* buffer);
  // The text has ended: an incomplete sequence is replaced.
  uint64_t Finish(TextBuffer* buffer);

 private:
  std::string pending_;  // the beginning of one sequence, valid so far
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_TEXT_BUFFER_H_

#ifndef TESSERA_SERVICES_PARSER_FORMATS_JSON_STREAM_H_
#define TESSERA_SERVICES_PARSER_FORMATS_JSON_STREAM_H_

// JSON that a model is still writing: skipped, or sent on as it comes in a form that can be closed
// to valid JSON at any moment.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::parser {

enum class JsonProgress : uint8_t { kMore, kDone, kError };

// Finds the end of one JSON value without holding any of it. Brackets and quotes only: what is
// between them is not checked.
class JsonSkipper {
 public:
  // `depth` > 0: the text stands inside that many containers; done when all have closed.
  explicit JsonSkipper(size_t depth = 0) : depth_(depth) {}
  // Adds the bytes that belong to the value to `consumed`. A number or word ends before the
  // character behind it, everything else with its last.
  JsonProgress Feed(std::string_view text, size_t* consumed);

 private:
  enum class Phase : uint8_t { kBetween, kString, kEscape, kWord };
  size_t depth_;
  Phase phase_ = Phase::kBetween;
};

// Rewrites one JSON object, piece by piece, so that what has been written plus Close() is always
// valid JSON with no key twice (the first wins). Forgives what models get wrong: raw control
// characters and unknown escapes in strings, Python's words, a comma before the end, words that are
// no JSON (which become strings).
class JsonObjectStream {
 public:
  // Takes from `text` up to the end of the object, appending to `out`. kDone: it has closed.
  // kError: no JSON from here on; Close() ends it. Cost: linear.
  JsonProgress Feed(std::string_view text, size_t* consumed, std::string* out);
  // Closes what is open. An unfinished string is kept, an unfinished number or key left out.
  void Close(std::string* out);
  // Something had to be forgiven or closed.
  bool repaired() const { return repaired_; }

 private:
  enum class Phase : uint8_t {
    kValue,
    kFirstValue,
    kFirstKey,
    kNextKey,
    kKey,
    kKeyEscape,
    kColon,
    kAfterValue,
    kString,
    kEscape,
    kUnicode,
    kWord,
  };
  struct Frame {
    bool object = false;
    std::set<std::string> keys;  // that have been written
  };

  JsonProgress FeedByte(char c, std::string* out);
  JsonProgress FeedStructure(char c, std::string* out);
  void FeedString(char c, std::string* out);
  JsonProgress BeginValue(char c, std::string* out);
  JsonProgress Pop(char c, std::string* out);
  void EndKey();
  void EndWord(std::string* out);
  void EndValue();
  void FeedEscape(char c, std::string* out);
  void FeedUnicode(char c, std::string* out);
  // Writes what comes before a value, then `text`; nothing inside a member that is left out.
  void Write(std::string_view text, std::string* out);

  Phase phase_ = Phase::kValue;
  std::vector<Frame> stack_;
  std::string before_;  // comma and key of the member whose value has not begun
  std::string key_;     // raw, escapes as written
  std::string word_;
  std::string unicode_;
  size_t muted_depth_ = 0;  // the stack size at which a member is left out; 0: none
  bool reread_ = false;     // the byte just fed belongs to the next token
  bool repaired_ = false;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_JSON_STREAM_H_

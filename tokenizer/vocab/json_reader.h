#ifndef TESSERA_TOKENIZER_VOCAB_JSON_READER_H_
#define TESSERA_TOKENIZER_VOCAB_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tessera::tokenizer {

// Nesting beyond this is refused.
inline constexpr int kJsonDepthMax = 64;

// Reads JSON values one after another from a text, without a tree: a tokenizer.json holds hundreds
// of thousands of strings that go straight into flat arrays. Every call skips white space first.
// Errors are sticky: after the first, every call returns false and status() tells where it was.
//
//   if (!reader.EnterObject()) ...
//   while (reader.NextKey(key)) reader.ReadString(value);   // false at the end or on an error
//   if (!reader.ok()) return reader.status();
//
// Ownership: borrows the text. Threading: one thread. Cost: one pass.
class JsonReader {
 public:
  enum class Kind : uint8_t { kObject, kArray, kString, kNumber, kBool, kNull, kNone };

  explicit JsonReader(std::string_view text) : text_(text) {}

  // The kind of the next value; kNone at the end of the text or if no value begins there.
  Kind Peek();

  bool EnterObject();
  // The next key of the object entered last; false (and the object is left) when there is none.
  bool NextKey(std::string& key);
  bool EnterArray();
  // Whether the array entered last has another element; false (and it is left) when it has none.
  bool NextElement();

  bool ReadString(std::string& value);  // unescaped, as UTF-8
  bool ReadNumber(double& value);
  // A non-negative integer without fraction or exponent, at most `max`.
  bool ReadUnsigned(uint64_t max, uint64_t& value);
  bool ReadBool(bool& value);
  // Steps over one value of any kind; `raw`, if not null, is its text.
  bool Skip(std::string_view* raw = nullptr);
  // Only white space is left.
  bool AtEnd();

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  size_t offset() const { return pos_; }

  // Makes `message` the error, with the offset.
  bool Fail(std::string_view message);

 private:
  void SkipSpace();
  bool Expect(char c, std::string_view what);
  bool Enter(char open, std::string_view what);
  bool NextItem(char close, bool& has_item);
  bool ReadEscape(std::string& value);
  bool ReadHex4(uint32_t& value);
  bool SkipString();
  bool SkipLiteral(std::string_view literal);
  std::string_view NumberText();

  std::string_view text_;
  size_t pos_ = 0;
  int depth_ = 0;
  uint64_t begun_ = 0;  // bit d: the container at depth d has had an item
  absl::Status status_;
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_VOCAB_JSON_READER_H_

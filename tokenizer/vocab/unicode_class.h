#ifndef TESSERA_TOKENIZER_VOCAB_UNICODE_CLASS_H_
#define TESSERA_TOKENIZER_VOCAB_UNICODE_CLASS_H_

#include <array>
#include <cstdint>

namespace tessera::tokenizer {

// The classes that pre-tokenizers tell apart, each code point in exactly one. They are those of the
// regular-expression engine of the Hugging Face library (Unicode 16.0), which the ids of trained
// models depend on, not those of whatever library this machine has.
enum CharClass : uint8_t {
  kOther,  // control, format, private and unassigned code points
  kLu,     // letters: upper, lower, title case, modifier, other
  kLl,
  kLt,
  kLm,
  kLo,
  kM,        // marks
  kN,        // numbers
  kP,        // punctuation
  kS,        // symbols
  kSpace,    // \s but for the next
  kNewline,  // CR and LF
};

// A set of classes; kBit(x) | kBit(y).
using ClassSet = uint16_t;
constexpr ClassSet kBit(CharClass c) { return static_cast<ClassSet>(1u << c); }
inline constexpr ClassSet kLetters = kBit(kLu) | kBit(kLl) | kBit(kLt) | kBit(kLm) | kBit(kLo);
inline constexpr ClassSet kSpaces = kBit(kSpace) | kBit(kNewline);

constexpr bool In(ClassSet set, uint8_t char_class) { return (set >> char_class & 1u) != 0; }

// Two-stage table: the class of every code point. Built once, immutable.
class UnicodeClasses {
 public:
  static const UnicodeClasses& Get();

  // `code_point` is at most U+10FFFF.
  uint8_t ClassOf(char32_t code_point) const { return Entry(code_point) & 0x0F; }
  // Whether the class is another one in Unicode 14.0, the version of Debian 12's PCRE2.
  bool IsNewSinceUnicode14(char32_t code_point) const { return (Entry(code_point) & kNew) != 0; }
  // The class of an ASCII byte.
  uint8_t ClassOfAscii(uint8_t byte) const { return blocks_[byte] & 0x0F; }

 private:
  static constexpr uint8_t kNew = 0x10;
  static constexpr uint32_t kBlock = 128;  // code points; the first block is ASCII
  static constexpr uint32_t kBlocksMax = 400;

  UnicodeClasses();
  uint8_t Entry(char32_t c) const { return blocks_[block_of_[c / kBlock] * kBlock + c % kBlock]; }

  std::array<uint16_t, 0x110000 / kBlock> block_of_;
  std::array<uint8_t, kBlocksMax * kBlock> blocks_;
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_VOCAB_UNICODE_CLASS_H_

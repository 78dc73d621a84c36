#ifndef TESSERA_TOKENIZER_BPE_PATTERN_SCANNER_H_
#define TESSERA_TOKENIZER_BPE_PATTERN_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera::tokenizer {

// The pre-tokenizer patterns of known model families, each matched by a hand-written scanner
// instead of a regular-expression engine. The first six tile every text: a match begins where the
// one before ended. The three of DeepSeek-V3 do not.
enum class PatternFamily : uint8_t {
  kNemo,   // Mistral-Nemo (Tekken), Nemotron-Nano-2 and Nemotron-3
  kO200k,  // gpt-4o, gpt-oss
  kLlama3,
  kQwen2,  // and Qwen 3
  kQwen35,
  kGpt2,        // ByteLevel with use_regex
  kDigits3,     // DeepSeek-V3, first split: up to three digits
  kCjkRun,      // second: Chinese characters and kana
  kDeepseekV3,  // third: the rest
};

// The family whose pattern is exactly `regex`.
std::optional<PatternFamily> FamilyOfPattern(std::string_view regex);

// The end of the match that begins at text[pos] (pos < text.size()), or `pos` if there is none.
// `text` is valid UTF-8 and `pos` at a code point. A leftmost-first backtracking engine gives the
// same. Cost: linear in the length of the match and the run of characters around its end.
size_t MatchPattern(PatternFamily family, std::string_view text, size_t pos);

// The ends of up to `count_max` consecutive matches from `pos`, for a family that tiles; returns
// how many there are. Fewer than `count_max` mean that the text is used up.
size_t ScanPattern(PatternFamily family, std::string_view text, size_t pos, uint32_t* ends,
                   size_t count_max);

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_BPE_PATTERN_SCANNER_H_

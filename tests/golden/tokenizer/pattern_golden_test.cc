// The hand-written pattern matchers against the pieces of the Hugging Face library, on the golden
// texts and on 3,000 texts made to sit on the borders of their rules.
#include "gtest/gtest.h"
#include "tests/golden/tokenizer/golden_cases.h"
#include "tokenizer/bpe/pattern_scanner.h"

namespace tessera::tokenizer {
namespace {

constexpr const char* kTilingFamilies[] = {"nemo", "o200k", "llama3", "qwen3", "qwen35", "gpt2"};

// The byte lengths of the pieces, one after the other.
std::vector<TokenId> LengthsOf(const std::vector<uint32_t>& ends) {
  std::vector<TokenId> lengths;
  uint32_t begin = 0;
  for (const uint32_t end : ends) lengths.push_back(end - std::exchange(begin, end));
  return lengths;
}

std::vector<uint32_t> ScanAll(PatternFamily family, const std::string& text) {
  std::vector<uint32_t> ends(text.size() + 1);
  ends.resize(ScanPattern(family, text, 0, ends.data(), ends.size()));
  return ends;
}

// Splits each piece by a pattern that leaves gaps, matches and gaps being pieces alike.
std::vector<uint32_t> SplitPieces(PatternFamily family, const std::string& text,
                                  const std::vector<uint32_t>& ends) {
  std::vector<uint32_t> out;
  uint32_t begin = 0;
  for (const uint32_t end : ends) {
    const std::string piece = text.substr(begin, end - begin);
    size_t gap = 0;
    for (size_t pos = 0; pos < piece.size();) {
      const size_t match = MatchPattern(family, piece, pos);
      if (match > pos) {
        if (gap < pos) out.push_back(static_cast<uint32_t>(begin + pos));
        out.push_back(static_cast<uint32_t>(begin + match));
        pos = gap = match;
      } else {
        do ++pos;
        while (pos < piece.size() && (piece[pos] & 0xC0) == 0x80);
      }
    }
    if (gap < piece.size()) out.push_back(end);
    begin = end;
  }
  return out;
}

void CompareFile(const char* name, const std::map<std::string, std::string>& texts) {
  const Json regexes = ReadMeta("pretok_strings.jsonl")["regexes"];
  Comparison comparison(name);
  int number = 0;
  for (const Json& line : ReadCases(name)) {
    const std::string id = line.value("id", "line " + std::to_string(++number));
    const std::string text = line.contains("text") ? line["text"].get<std::string>() : texts.at(id);
    for (const char* family : kTilingFamilies) {
      const auto known = FamilyOfPattern(regexes[family].get<std::string>());
      ASSERT_TRUE(known.has_value()) << family;
      comparison.Ids(id + " " + family, LengthsOf(ScanAll(*known, text)),
                     line[family].get<std::vector<TokenId>>());
    }
    std::vector<uint32_t> ends;
    if (!text.empty()) ends.push_back(static_cast<uint32_t>(text.size()));
    for (const Json& regex : regexes["deepseek_v3"]) {
      const auto known = FamilyOfPattern(regex.get<std::string>());
      ASSERT_TRUE(known.has_value()) << regex;
      ends = SplitPieces(*known, text, ends);
    }
    comparison.Ids(id + " deepseek_v3", LengthsOf(ends),
                   line["deepseek_v3"].get<std::vector<TokenId>>());
  }
}

TEST(PatternGolden, TextsAreSplitAsTheReferenceDoes) {
  CompareFile("pretok_strings.jsonl", ReadTexts());
}

TEST(PatternGolden, FuzzedTextsAreSplitAsTheReferenceDoes) { CompareFile("pretok_fuzz.jsonl", {}); }

}  // namespace
}  // namespace tessera::tokenizer

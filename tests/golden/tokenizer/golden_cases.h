#ifndef TESSERA_TESTS_GOLDEN_TOKENIZER_GOLDEN_CASES_H_
#define TESSERA_TESTS_GOLDEN_TOKENIZER_GOLDEN_CASES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tokenizer/bpe/tokenizer.h"

namespace tessera::tokenizer {

using Json = nlohmann::json;

// The lines of a file beside these tests, without the "_meta" line in front. Fails the test when it
// is not there or empty.
std::vector<Json> ReadCases(const std::string& name);
// The "_meta" object of such a file.
Json ReadMeta(const std::string& name);
// strings.jsonl: text by id.
std::map<std::string, std::string> ReadTexts();

std::string ReadWholeFile(const std::string& path);

// The path of a hub tokenizer's file by its short name ("qwen3").
std::string HubPath(const std::string& name);
// The tokenizer in that file, loaded once; fails the test, with the remedy, when npm's data is
// missing.
const Tokenizer* HubTokenizer(const std::string& name);

// Counts comparisons and shows the first few that differ.
class Comparison {
 public:
  explicit Comparison(std::string what) : what_(std::move(what)) {}
  // Fails the test if anything differed or nothing was compared.
  ~Comparison();

  void Ids(const std::string& where, const std::vector<TokenId>& found,
           const std::vector<TokenId>& expected);
  void Text(const std::string& where, const std::string& found, const std::string& expected);

 private:
  void Count(bool equal, const std::string& where, const std::string& difference);

  std::string what_;
  int compared_ = 0;
  int different_ = 0;
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TESTS_GOLDEN_TOKENIZER_GOLDEN_CASES_H_

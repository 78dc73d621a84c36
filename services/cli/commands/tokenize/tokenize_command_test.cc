// The filters on the demo model's tokenizer: ids 10 and 11 are <|im_start|> and <|im_end|>.

#include "services/cli/commands/tokenize/tokenize_command.h"

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

const tokenizer::Tokenizer& Demo() {
  static const auto& tokenizer = *[] {
    auto loaded = tokenizer::Tokenizer::Load("deploy/demo_model");
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return std::move(loaded)->release();
  }();
  return tokenizer;
}

Json Tokenize(const Json& line, bool offsets = false) {
  const auto answer = TokenizeLine(Demo(), offsets, line);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(Json());
}

Json Detokenize(const Json& line, bool stream = false) {
  const auto answer = DetokenizeLine(Demo(), stream, line);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(Json());
}

TEST(Tokenize, TokensInTheTextAreReadAsTheLineSays) {
  const Json plain = Tokenize({{"text", "<|im_end|>"}, {"special_tokens", "text"}})["ids"];
  EXPECT_EQ(Tokenize({{"text", "<|im_end|>"}})["ids"], Json({11}));
  EXPECT_EQ(Tokenize({{"text", "<|im_end|>"}, {"special_tokens", "parse"}})["ids"], Json({11}));
  EXPECT_GT(plain.size(), 1u);
  EXPECT_EQ(Tokenize({{"text", "<|im_end|>"}, {"added_tokens", "text"}})["ids"], plain);
}

TEST(Tokenize, AddsSpecialTokensOnlyWhenAsked) {
  const Json bare = Tokenize({{"text", "hello"}})["ids"];
  const Json added = Tokenize({{"text", "hello"}, {"add_special_tokens", true}})["ids"];
  ASSERT_EQ(added.size(), bare.size() + 1);
  EXPECT_EQ(added[0], 1);
  EXPECT_EQ(Tokenize({{"text", ""}})["ids"], Json::array());
}

TEST(Tokenize, OffsetsCoverTheTextInOrder) {
  EXPECT_FALSE(Tokenize({{"text", "a"}}).contains("offsets"));
  const std::string text = "Vard\u00f8 <|im_end|>\u5df4\u897f";
  const Json answer = Tokenize({{"text", text}}, /*offsets=*/true);
  ASSERT_EQ(answer["offsets"].size(), answer["ids"].size());
  size_t end = 0;
  for (const Json& span : answer["offsets"]) {
    EXPECT_EQ(span[0], end);
    end = span[1].get<size_t>();
  }
  EXPECT_EQ(end, text.size());
}

TEST(Detokenize, GivesTheTextBack) {
  const std::string text = "Vard\u00f8 <|im_end|>\u5df4\u897f";
  const Json ids = Tokenize({{"text", text}})["ids"];
  EXPECT_EQ(Detokenize({{"ids", ids}})["text"], text);
  EXPECT_EQ(Detokenize({{"ids", ids}, {"skip_special_tokens", true}})["text"],
            "Vard\u00f8 \u5df4\u897f");
  EXPECT_EQ(Detokenize({{"ids", Json::array()}})["text"], "");
  EXPECT_EQ(Detokenize({{"ids", {4294967295u}}})["text"], "");
}

TEST(Detokenize, AStreamGivesOneDeltaAnIdAndTheSameText) {
  const std::string text = "x \U0001F9ED\u1E9E\u5df4";
  const Json ids = Tokenize({{"text", text}})["ids"];
  const Json answer = Detokenize({{"ids", ids}}, /*stream=*/true);
  ASSERT_EQ(answer["deltas"].size(), ids.size());
  std::string joined;
  bool any_null = false;
  for (const Json& delta : answer["deltas"]) {
    any_null = any_null || delta.is_null();
    if (delta.is_string()) joined += delta.get<std::string>();
  }
  EXPECT_EQ(joined, text);
  EXPECT_TRUE(any_null);  // the compass needs several tokens
  EXPECT_EQ(answer["rest"], "");
}

TEST(Detokenize, WhatAStreamLeavesUnfinishedIsInItsRest) {
  Json ids = Tokenize({{"text", "\U0001F9ED"}})["ids"];
  ASSERT_GT(ids.size(), 1u);
  ids.erase(ids.size() - 1);
  const Json answer = Detokenize({{"ids", ids}}, /*stream=*/true);
  EXPECT_EQ(answer["rest"], "\uFFFD");
  EXPECT_EQ(Detokenize({{"ids", ids}})["text"], "\uFFFD");
}

std::string FieldOfError(const absl::StatusOr<Json>& answer) {
  if (answer.ok()) return "none";
  return services::FieldOf(answer.status()).value_or("no field");
}

TEST(TokenizeFilters, ABadFieldIsNamed) {
  const auto encode = [](const char* line) {
    return FieldOfError(TokenizeLine(Demo(), false, Json::parse(line)));
  };
  EXPECT_EQ(encode("[]"), "no field");
  EXPECT_EQ(encode("{}"), "text");
  EXPECT_EQ(encode(R"({"text": 5})"), "text");
  EXPECT_EQ(encode(R"({"text": "", "add_special_tokens": 1})"), "add_special_tokens");
  EXPECT_EQ(encode(R"({"text": "", "special_tokens": "drop"})"), "special_tokens");
  EXPECT_EQ(encode(R"({"text": "", "added_tokens": true})"), "added_tokens");
  EXPECT_EQ(encode(R"({"text": "", "added_tokens": null, "id": "x"})"), "none");
  const auto decode = [](const char* line) {
    return FieldOfError(DetokenizeLine(Demo(), true, Json::parse(line)));
  };
  EXPECT_EQ(decode("3"), "no field");
  EXPECT_EQ(decode("{}"), "ids");
  EXPECT_EQ(decode(R"({"ids": "1"})"), "ids");
  EXPECT_EQ(decode(R"({"ids": [1, -1]})"), "ids[1]");
  EXPECT_EQ(decode(R"({"ids": [1.5]})"), "ids[0]");
  EXPECT_EQ(decode(R"({"ids": [4294967296]})"), "ids[0]");
  EXPECT_EQ(decode(R"({"ids": [], "skip_special_tokens": "no"})"), "skip_special_tokens");
}

TEST(TokenizeFilters, AMissingModelIsExitStatusTwo) {
  CLI::App app("tessera");
  int exit_status = 0;
  AddTokenizeCommands(app, exit_status);
  app.parse("tokenize --model no/such/folder", false);
  EXPECT_EQ(exit_status, 2);
}

}  // namespace
}  // namespace tessera::cli

// The filters on the demo model, against its reference answers.

#include "services/cli/commands/model/model_commands.h"

#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

std::unique_ptr<ModelRunner> Demo(uint32_t chunk) {
  auto runner = ModelRunner::Open({.model = "deploy/demo_model", .chunk = chunk, .threads = 2});
  EXPECT_TRUE(runner.ok()) << runner.status();
  return *std::move(runner);
}

std::vector<Json> Prompts() {
  std::vector<Json> prompts;
  std::ifstream file("deploy/demo_model/demo_prompts.jsonl");
  for (std::string line; std::getline(file, line);) prompts.push_back(Json::parse(line));
  EXPECT_EQ(prompts.size(), 40u);
  return prompts;
}

TEST(Generate, GivesTheReferencesTokensOnTheFortyDemoPromptsForAnyChunk) {
  for (uint32_t chunk : {512u, 33u}) {
    const auto runner = Demo(chunk);
    for (const Json& prompt : Prompts()) {
      const auto answer = GenerateLine(
          *runner, {2, 11},
          {{"prompt", prompt["prompt_ids"]}, {"max_tokens", prompt["answer_ids"].size() + 4}});
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_EQ((*answer)["ids"], prompt["answer_ids"]) << prompt["id"];
      EXPECT_EQ((*answer)["finish_reason"], "stop");
    }
  }
}

TEST(Generate, ASeedRepeatsADrawAndAnotherOneDiffers) {
  const auto runner = Demo(512);
  const auto draw = [&](int seed) {
    return *GenerateLine(
        *runner, {},
        {{"prompt", {10, 500, 600}}, {"max_tokens", 20}, {"temperature", 2.0}, {"seed", seed}});
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
  EXPECT_EQ(draw(1)["ids"].size(), 20u);
}

TEST(ModelFilters, BadLinesNameTheirField) {
  const auto runner = Demo(512);
  const auto field = [&](const Json& line) {
    return services::FieldOf(GenerateLine(*runner, {}, line).status()).value_or("none");
  };
  EXPECT_EQ(field({{"max_tokens", 3}}), "prompt");
  EXPECT_EQ(field({{"prompt", Json::array()}}), "prompt");
  EXPECT_EQ(field({{"prompt", {1, 4096}}}), "prompt[1]");
  EXPECT_EQ(field({{"prompt", {1, -2}}}), "prompt[1]");
  EXPECT_EQ(field({{"prompt", {1}}, {"max_tokens", 0}}), "max_tokens");
  EXPECT_EQ(field({{"prompt", {1}}, {"top_p", 2}}), "top_p");
  EXPECT_EQ(field({{"prompt", {1}}, {"logit_bias", {{"9999", 1}}}}), "logit_bias.9999");
  EXPECT_EQ(services::FieldOf(LogitsLine(*runner, {{"prompt", {1}}, {"positions", {1}}}).status()),
            "positions[0]");
}

}  // namespace
}  // namespace tessera::cli

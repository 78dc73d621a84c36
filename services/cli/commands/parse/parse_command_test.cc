#include "services/cli/commands/parse/parse_command.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kLine[] = R"({"id": "a", "enable_thinking": true, "finish": "stop",
    "text": "Hm.\n</think>\nOk.\n<tool_call>\n<function=f>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>",
    "tools": [{"type": "function", "function": {"name": "f", "parameters":
        {"type": "object", "properties": {"n": {"type": "integer"}}}}}]})";

TEST(ParseCommand, AnswersWithTheMessageOfAWholeResponse) {
  const Json answer = *ParseLine({}, Json::parse(kLine));
  EXPECT_EQ(answer["id"], "a");
  EXPECT_EQ(answer["mode"], "whole");
  EXPECT_EQ(answer["finish_reason"], "tool_calls");
  const Json& message = answer["message"];
  EXPECT_EQ(message["reasoning"], "Hm.");
  EXPECT_EQ(message["content"], "\nOk.");
  EXPECT_EQ(message["tool_calls"][0]["type"], "function");
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], R"({"n": 3})");
}

TEST(ParseCommand, AnswersWithDeltasWhenAskedToStream) {
  ParseSettings settings;
  settings.stream_seed = 3;
  const Json answer = *ParseLine(settings, Json::parse(kLine));
  EXPECT_EQ(answer["mode"], "stream");
  EXPECT_GT(answer["deltas"].size(), 3u);
  EXPECT_EQ(answer.dump(), ParseLine(settings, Json::parse(kLine))->dump());  // the seed decides
}

TEST(ParseCommand, ContentAndReasoningAreNullIfThereIsNone) {
  const Json answer = *ParseLine({}, Json{{"text", ""}});
  EXPECT_TRUE(answer["message"]["content"].is_null());
  EXPECT_TRUE(answer["message"]["reasoning"].is_null());
  EXPECT_FALSE(answer["message"].contains("tool_calls"));
}

std::string FieldOfError(const char* line) {
  const auto answer = ParseLine({}, Json::parse(line));
  if (answer.ok()) return "none";
  return services::FieldOf(answer.status()).value_or("no field");
}

TEST(ParseCommand, ABadFieldIsNamed) {
  EXPECT_EQ(FieldOfError("{}"), "text");
  EXPECT_EQ(FieldOfError("[]"), "no field");
  EXPECT_EQ(FieldOfError(R"({"text": 5})"), "text");
  EXPECT_EQ(FieldOfError(R"({"text": "", "id": [1]})"), "id");
  EXPECT_EQ(FieldOfError(R"({"text": "", "tools": 5})"), "tools");
  EXPECT_EQ(FieldOfError(R"({"text": "", "tools": [{"function": {}}]})"), "tools[0].function.name");
  EXPECT_EQ(FieldOfError(R"({"text": "", "tool_choice": "maybe"})"), "tool_choice");
  EXPECT_EQ(FieldOfError(R"({"text": "", "tool_choice": {"type": "function"}})"), "tool_choice");
  EXPECT_EQ(FieldOfError(R"({"text": "", "enable_thinking": 1})"), "enable_thinking");
  EXPECT_EQ(FieldOfError(R"({"text": "", "finish": "done"})"), "finish");
  EXPECT_EQ(FieldOfError(R"({"text": "", "tools": null, "tool_choice": null})"), "none");
}

TEST(ParseCommand, ASchemaThatNestsWithoutEndIsAnError) {
  const std::string deep = R"({"text": "", "tools": [{"function": {"name": "f", "parameters": )" +
                           std::string(500000, '[') + std::string(500000, ']') + "}}]}";
  EXPECT_EQ(FieldOfError(deep.c_str()), "tools[0]");
}

TEST(ParseCommand, AnUnknownFormatIsAnError) {
  ParseSettings settings;
  settings.tool_format = "xml";
  EXPECT_FALSE(ParseLine(settings, Json{{"text", ""}}).ok());
}

TEST(ParseCommand, IsACommandOfTheProgram) {
  CLI::App app("tessera");
  int exit_status = 0;
  AddParseCommand(app, exit_status);
  app.parse("parse --tools nonsense", false);
  EXPECT_EQ(exit_status, 2);
}

}  // namespace
}  // namespace tessera::cli

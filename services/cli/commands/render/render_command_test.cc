#include "services/cli/commands/render/render_command.h"

#include "gtest/gtest.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

tokenizer::RenderClock Clock() {
  tokenizer::RenderClock clock;
  clock.now = absl::CivilSecond(2025, 3, 7, 14, 5, 9);
  return clock;
}

TEST(RenderCommandTest, RendersALineWithItsOwnTemplate) {
  bool failed = false;
  const auto answer = RenderLine(
      nullptr, Clock(),
      {{"template", "{{ x }} {{ strftime_now('%Y') }}"}, {"context", {{"x", 1.0}}}}, failed);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->dump(), R"({"text":"1.0 2025"})");
  EXPECT_FALSE(failed);
}

TEST(RenderCommandTest, UsesThePresetTemplateAndGivesGenerationSpans) {
  auto preset =
      tokenizer::ChatTemplate::Compile("a{% generation %}{{ x }}{% endgeneration %}", "preset");
  ASSERT_TRUE(preset.ok()) << preset.status();
  bool failed = false;
  const auto answer = RenderLine(preset->get(), Clock(), {{"context", {{"x", "é!"}}}}, failed);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["generation_spans"].dump(), "[[1,3]]");
}

TEST(RenderCommandTest, ARenderingErrorIsAnAnswerAndCounts) {
  bool failed = false;
  const auto answer = RenderLine(
      nullptr, Clock(),
      {{"template", "\n{{ raise_exception('no') }}"}, {"context", Json::object()}}, failed);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["error"]["type"], "TemplateError");
  EXPECT_EQ((*answer)["error"]["message"], "no");
  EXPECT_EQ((*answer)["error"]["line"], 2);
  EXPECT_TRUE(failed);
}

TEST(RenderCommandTest, NamesTheFieldThatIsMissing) {
  bool failed = false;
  const auto no_context = RenderLine(nullptr, Clock(), {{"template", "x"}}, failed);
  EXPECT_EQ(services::FieldOf(no_context.status()), "context");
  const auto no_template = RenderLine(nullptr, Clock(), {{"context", Json::object()}}, failed);
  EXPECT_EQ(services::FieldOf(no_template.status()), "template");
}

TEST(RenderCommandTest, ReadsIsoTimes) {
  EXPECT_EQ(ParseIsoTime("2025-03-07 14:05:09").value(), absl::CivilSecond(2025, 3, 7, 14, 5, 9));
  EXPECT_FALSE(ParseIsoTime("yesterday").ok());
}

}  // namespace
}  // namespace tessera::cli

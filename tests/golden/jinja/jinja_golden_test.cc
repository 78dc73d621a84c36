// Every case of cases.jsonl and nemotron_style.jsonl, rendered as Python's jinja2 rendered it.

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tokenizer/chat_template/chat_template.h"

namespace tessera::tokenizer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFolder[] = "tests/golden/jinja/";

// Cases with a feature that the engine refuses by name. They must be refused, never rendered
// wrong; whoever builds the feature takes its case out.
const std::set<std::string>& Refused() {
  static const std::set<std::string> kRefused = {"f_wordcount_etc#0", "f_escape_safe#0",
                                                 "f_safe_concat#0", "f_unknown_lazy#0",
                                                 "s_format_method#0"};
  return kRefused;
}

void Check(const Json& c, const std::string& source) {
  SCOPED_TRACE(c["id"].get<std::string>());
  RenderClock clock;
  clock.now = absl::CivilSecond(2025, 3, 7, 14, 5, 9);
  absl::StatusOr<Rendered> rendered = absl::InternalError("not rendered");
  const auto compiled = ChatTemplate::Compile(source, "case");
  if (compiled.ok()) {
    rendered = (*compiled)->Render(c["context"], RenderLimits(), clock);
  } else {
    rendered = compiled.status();
  }
  if (Refused().count(c["id"]) != 0) {
    ASSERT_FALSE(rendered.ok()) << "works now: take it out of the list";
    return;
  }
  if (c.contains("error")) {
    ASSERT_FALSE(rendered.ok()) << rendered->text;
    const std::optional<TemplateError> error = TemplateErrorOf(rendered.status());
    ASSERT_TRUE(error.has_value());
    if (c["error"]["type"] == "TemplateError") {
      EXPECT_EQ(error->type, "TemplateError");
      EXPECT_EQ(error->message, c["error"]["message"].get<std::string>());
    }
    return;
  }
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  EXPECT_EQ(rendered->text, c["expected"].get<std::string>());
  size_t at = 0;
  for (const TextSpan& span : rendered->spans) {
    EXPECT_EQ(span.begin, at);
    at = span.end;
  }
  EXPECT_EQ(at, rendered->text.size());
  if (!c.contains("generation_spans")) return;
  Json spans = Json::array();
  for (const GenerationSpan& span : rendered->generation_spans) {
    spans.push_back(Json::array({span.begin, span.end}));
  }
  EXPECT_EQ(spans, c["generation_spans"]);
}

int CheckFile(const std::string& name, const std::string& source) {
  std::ifstream file(kFolder + name);
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    const Json c = Json::parse(line);
    if (c.contains("_meta")) continue;
    Check(c, c.contains("template") ? c["template"].get<std::string>() : source);
    ++cases;
  }
  return cases;
}

TEST(JinjaGoldenTest, RendersEveryCaseAsPython) { EXPECT_EQ(CheckFile("cases.jsonl", ""), 196); }

TEST(JinjaGoldenTest, RendersTheNemotronStyleTemplateAsPython) {
  std::ifstream file(std::string(kFolder) + "nemotron_style.jinja");
  const std::string source((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(CheckFile("nemotron_style.jsonl", source), 15);
}

}  // namespace
}  // namespace tessera::tokenizer

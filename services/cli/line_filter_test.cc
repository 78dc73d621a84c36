#include "services/cli/line_filter.h"

#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<Json> Double(const Json& line) {
  if (!line.contains("n")) return services::InvalidField("n", "is missing; give a number");
  return Json{{"n", line["n"].get<int>() * 2}};
}

TEST(RunLineFilter, AnswersEachLineInOrder) {
  std::istringstream in("{\"n\":1}\n\n{\"n\":2}");
  std::ostringstream out;
  EXPECT_EQ(RunLineFilter(in, out, Double), 0);
  EXPECT_EQ(out.str(), "{\"n\":2}\n{\"n\":4}\n");
}

TEST(RunLineFilter, TurnsABadLineIntoAnErrorAndGoesOn) {
  std::istringstream in("{]\n{}\n{\"n\":3}\n");
  std::ostringstream out;
  EXPECT_EQ(RunLineFilter(in, out, Double), 1);
  std::istringstream lines(out.str());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(Json::parse(line)["error"]["code"], "INVALID_ARGUMENT");
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(Json::parse(line)["error"]["field"], "n");
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "{\"n\":6}");
}

TEST(RunLineFilter, RefusesALineOverTheLimit) {
  std::string text(kLineBytesMax + 2, ' ');
  text[0] = '1';
  std::istringstream in(text + "\n{\"n\":3}\n");
  std::ostringstream out;
  EXPECT_EQ(RunLineFilter(in, out, Double), 1);
  EXPECT_NE(out.str().find("RESOURCE_EXHAUSTED"), std::string::npos);
  EXPECT_NE(out.str().find("{\"n\":6}"), std::string::npos);
}

}  // namespace
}  // namespace tessera::cli

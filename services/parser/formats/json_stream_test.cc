#include "services/parser/formats/json_stream.h"

#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tessera::parser {
namespace {

// What is written for `text` cut off at its end, the same whole and byte by byte.
std::string Rewrite(std::string_view text, bool* repaired = nullptr) {
  const auto run = [&](size_t piece) {
    JsonObjectStream stream;
    std::string out;
    JsonProgress progress = JsonProgress::kMore;
    for (size_t i = 0; i < text.size() && progress == JsonProgress::kMore; i += piece) {
      size_t consumed = 0;
      progress = stream.Feed(text.substr(i, piece), &consumed, &out);
    }
    if (progress != JsonProgress::kDone) stream.Close(&out);
    if (repaired != nullptr) *repaired = stream.repaired();
    return out;
  };
  const std::string whole = run(text.size());
  EXPECT_EQ(run(1), whole);
  return whole;
}

TEST(JsonObjectStream, SendsValidJsonOn) {
  bool repaired = true;
  EXPECT_EQ(Rewrite(R"({"a":1,"b":[true,{"c":"x\n\u00e9"}],"d":{}, "e":-1.5e3})", &repaired),
            R"({"a": 1, "b": [true, {"c": "x\n\u00e9"}], "d": {}, "e": -1.5e3})");
  EXPECT_FALSE(repaired);
}

TEST(JsonObjectStream, IsValidWhereverItIsCut) {
  const std::string text =
      R"({"a": 12, "b": ["x", [1, {"c": "q\"\\\u0041\q"}]], "b": {"z": [1, 2]}, "d": tr, "e": {"f": None}})";
  for (size_t cut = 1; cut <= text.size(); ++cut) {
    const std::string out = Rewrite(std::string_view(text).substr(0, cut));
    const auto parsed = nlohmann::json::parse(out, nullptr, false);
    EXPECT_TRUE(parsed.is_object()) << cut << ": " << out;
  }
}

TEST(JsonObjectStream, LeavesOutAnUnfinishedNumberAndKeepsAnUnfinishedString) {
  EXPECT_EQ(Rewrite(R"({"a": 1, "b": 12)"), R"({"a": 1})");
  EXPECT_EQ(Rewrite(R"({"a": 1, "b": "12)"), R"({"a": 1, "b": "12"})");
  EXPECT_EQ(Rewrite(R"({"a": 1, "b)"), R"({"a": 1})");
  EXPECT_EQ(Rewrite(R"({"a": 1, "b":)"), R"({"a": 1})");
}

TEST(JsonObjectStream, OfAKeyUsedTwiceTheFirstStands) {
  EXPECT_EQ(Rewrite(R"({"a": 1, "a": {"x": [1, "y"]}, "\u0061": 2, "b": 3})"),
            R"({"a": 1, "b": 3})");
}

TEST(JsonObjectStream, ForgivesWhatModelsGetWrong) {
  bool repaired = false;
  EXPECT_EQ(Rewrite("{\"a\": \"x\ny\\q\", \"b\": None, \"c\": [1,], \"d\": NaN,}", &repaired),
            R"({"a": "x\ny\\q", "b": null, "c": [1], "d": "NaN"})");
  EXPECT_TRUE(repaired);
}

TEST(JsonObjectStream, StopsWhereNoJsonFollows) {
  JsonObjectStream stream;
  std::string out;
  size_t consumed = 0;
  EXPECT_EQ(stream.Feed(R"({"a": 1 ; "b": 2})", &consumed, &out), JsonProgress::kError);
  EXPECT_EQ(consumed, 8u);
  stream.Close(&out);
  EXPECT_EQ(out, R"({"a": 1})");
}

TEST(JsonObjectStream, StopsAtTheNestingLimit) {
  const std::string out = Rewrite("{\"a\": " + std::string(100000, '['));
  EXPECT_TRUE(nlohmann::json::parse(out, nullptr, false).is_object());
}

TEST(JsonSkipper, FindsTheEndOfAValue) {
  for (const auto& [text, bytes] : {std::pair{R"({"a": "}\"", "b": [1]} x)", 22},
                                    {"\"a\\\"b\" x", 6},
                                    {"123, ", 3},
                                    {"[[], {}]]", 8}}) {
    JsonSkipper skipper;
    size_t consumed = 0;
    EXPECT_EQ(skipper.Feed(text, &consumed), JsonProgress::kDone) << text;
    EXPECT_EQ(consumed, static_cast<size_t>(bytes)) << text;
  }
}

}  // namespace
}  // namespace tessera::parser

#include "services/parser/formats/json_text.h"

#include <string>

#include "gtest/gtest.h"

namespace tessera::parser {
namespace {

std::string Json(std::string_view text) {
  const auto value = ReadJson(text);
  return value.has_value() ? value->text : "-";
}

std::string Python(std::string_view text) {
  const auto value = ReadPythonLiteral(text);
  return value.has_value() ? value->text : "-";
}

TEST(AppendJsonEscaped, EscapesQuotesBackslashesAndControlCharactersOnly) {
  std::string out;
  AppendJsonEscaped(std::string_view("a\"\\\n\t\x01\0é/", 10), &out);
  EXPECT_EQ(out, "a\\\"\\\\\\n\\t\\u0001\\u0000é/");
}

TEST(ReadJson, RewritesWithOneSpacing) {
  EXPECT_EQ(Json(" {\"a\":[1,2 , {\"b\":null}],\"c\":true} "),
            "{\"a\": [1, 2, {\"b\": null}], \"c\": true}");
  EXPECT_EQ(Json("[]"), "[]");
  EXPECT_EQ(Json("{ }"), "{}");
}

TEST(ReadJson, KeepsEveryDigitOfANumber) {
  EXPECT_EQ(Json("123456789012345678901234567890"), "123456789012345678901234567890");
  EXPECT_EQ(Json("[-0.10, 1E+2]"), "[-0.10, 1E+2]");
}

TEST(ReadJson, RefusesNumbersBeyondADoubleButNotTinyOnes) {
  EXPECT_EQ(Json("1e999"), "-");
  EXPECT_EQ(Json("1e-999"), "1e-999");
  EXPECT_EQ(Json("NaN"), "-");
  EXPECT_EQ(Json("-Infinity"), "-");
}

TEST(ReadJson, DecodesEscapesOnce) {
  EXPECT_EQ(Json(R"("\u00e9\/\n\"\ud83d\ude00")"), "\"é/\\n\\\"😀\"");
  EXPECT_EQ(Json(R"("\ud83d x")"), R"("\ud83d x")");
}

TEST(ReadJson, OfAKeyUsedTwiceTheLastValueStandsInTheFirstPlace) {
  EXPECT_EQ(Json(R"({"a": 1, "b": {"x": 1, "x": 2}, "\u0061": 3})"), R"({"a": 3, "b": {"x": 2}})");
}

TEST(ReadJson, RefusesWhatIsNoJson) {
  for (const char* text :
       {"",      "{",        "{\"a\" 1}", "[1,]",      "{\"a\":1,}", "[1 2]",    "'a'",
        "True",  "\"a\nb\"", "\"\\x\"",   "01",        "1.",         ".5",       "+1",
        "{1:2}", "[1] 2",    "-",         "\"\\u12\"", "nul",        "{\"a\":}", "\"open"}) {
    EXPECT_EQ(Json(text), "-") << text;
  }
}

TEST(ReadJson, RefusesNestingBeyondTheLimit) {
  const std::string deep(1000000, '[');
  EXPECT_EQ(Json(deep), "-");
  const std::string fine = std::string(100, '[') + std::string(100, ']');
  EXPECT_EQ(Json(fine), fine);
}

TEST(ReadPythonLiteral, ReadsDictsListsAndTuples) {
  EXPECT_EQ(Python("{'a': True, 'b': None, \"c\": [1, 2.5,], }"),
            R"({"a": true, "b": null, "c": [1, 2.5]})");
  EXPECT_EQ(Python("(1, 'x')"), R"([1, "x"])");
  EXPECT_EQ(Python("(1,)"), "[1]");
  EXPECT_EQ(Python("[+5, -.5, 1_0]"), "-");
  EXPECT_EQ(Python("[+5, -.5]"), "[5, -0.5]");
}

TEST(ReadPythonLiteral, UndoesPythonsEscapes) {
  EXPECT_EQ(Python(R"(['it\'s', "\x41\u00e9\101", r'\d', 'a' 'b', '''x
"y"'''])"),
            R"(["it's", "AéA", "\\d", "ab", "x\n\"y\""])");
  EXPECT_EQ(Python(R"(['\q'])"), R"(["\\q"])");
}

TEST(ReadPythonLiteral, MakesKeysStrings) {
  EXPECT_EQ(Python("{1: 'a', None: 2, True: 3}"), R"({"1": "a", "null": 2, "true": 3})");
}

TEST(ReadPythonLiteral, RefusesWhatIsNone) {
  for (const char* text :
       {"", "5", "'a'", "{'a'}", "(1)", "{'a': true}", "[b'x']", "['a'", "{", "[f()]", "[1 2]",
        "[nan]", "{[1]: 2}", "['\\N{DASH}']", "['a\nb']", "['a' 'b", "[,]"}) {
    EXPECT_EQ(Python(text), "-") << text;
  }
}

TEST(ReadInteger, TakesASignAndLeadingZerosOff) {
  EXPECT_EQ(ReadInteger("+7"), "7");
  EXPECT_EQ(ReadInteger("-007"), "-7");
  EXPECT_EQ(ReadInteger("-0"), "0");
  EXPECT_EQ(ReadInteger("99999999999999999999"), "99999999999999999999");
  for (const char* text : {"", "+", "1.0", "1e3", "1_000", "0x10", "--1", "1 2"}) {
    EXPECT_FALSE(ReadInteger(text).has_value()) << text;
  }
}

TEST(ReadDecimal, MakesJsonOfWhatPythonReads) {
  EXPECT_EQ(ReadDecimal("20.50"), "20.50");
  EXPECT_EQ(ReadDecimal("-.5"), "-0.5");
  EXPECT_EQ(ReadDecimal("+5."), "5.0");
  EXPECT_EQ(ReadDecimal("01.5E3"), "1.5e3");
  EXPECT_EQ(ReadDecimal("1e-999"), "1e-999");
  for (const char* text : {"", ".", "1e", "1e999", "inf", "nan", "1.5x", "e5", "5", "1.5.5"}) {
    EXPECT_FALSE(ReadDecimal(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace tessera::parser

#include "services/parser/formats/value_types.h"

#include <string>

#include "gtest/gtest.h"

namespace tessera::parser {
namespace {

using Json = nlohmann::ordered_json;

uint8_t Types(const char* schema, const char* root = "{}") {
  return CollectTypes(Json::parse(schema), Json::parse(root)).bits();
}

std::string Value(const char* schema, std::string_view value) {
  const Json parsed = Json::parse(schema);
  const TypedValue typed = TypeValue(CollectTypes(parsed, parsed), value);
  return typed.json + (typed.raw_string ? "!" : "");
}

constexpr char kInteger[] = R"({"type": "integer"})";
constexpr char kNumber[] = R"({"type": "number"})";
constexpr char kBoolean[] = R"({"type": "boolean"})";
constexpr char kObject[] = R"({"type": "object"})";
constexpr char kArray[] = R"({"type": "array"})";
constexpr char kString[] = R"({"type": "string"})";
constexpr char kAny[] = R"({"type": "any"})";

TEST(CollectTypes, ReadsTypeNamesAliasesAndLists) {
  EXPECT_EQ(Types(kString), TypeSet::kString);
  EXPECT_EQ(Types(R"({"type": ["integer", "null"]})"), TypeSet::kInteger | TypeSet::kNull);
  for (const char* name : {"str", "text", "varchar", "char", "enum"}) {
    EXPECT_EQ(Types(Json{{"type", name}}.dump().c_str()), TypeSet::kString) << name;
  }
  for (const char* name : {"int", "int32", "int64", "uint", "uint8", "long", "short", "unsigned"}) {
    EXPECT_EQ(Types(Json{{"type", name}}.dump().c_str()), TypeSet::kInteger) << name;
  }
  for (const char* name : {"float", "float32", "float64", "double"}) {
    EXPECT_EQ(Types(Json{{"type", name}}.dump().c_str()), TypeSet::kNumber) << name;
  }
  EXPECT_EQ(Types(R"({"type": "bool"})"), TypeSet::kBoolean);
  EXPECT_EQ(Types(R"({"type": "dict"})"), TypeSet::kObject);
  for (const char* name : {"list", "arr", "sequence"}) {
    EXPECT_EQ(Types(Json{{"type", name}}.dump().c_str()), TypeSet::kArray) << name;
  }
  EXPECT_EQ(Types(kAny), TypeSet::kUnknown);
}

TEST(CollectTypes, TakesTheKindsOfEnumAndConst) {
  EXPECT_EQ(Types(R"({"enum": [1, "a", null]})"),
            TypeSet::kInteger | TypeSet::kString | TypeSet::kNull);
  EXPECT_EQ(Types(R"({"const": true})"), TypeSet::kBoolean);
  EXPECT_EQ(Types(R"({"const": 1.5})"), TypeSet::kNumber);
}

TEST(CollectTypes, UnitesTheBranchesOfAnyOfOneOfAndAllOf) {
  EXPECT_EQ(Types(R"({"anyOf": [{"type": "integer"}, {"oneOf": [{"type": "null"},
                      {"allOf": [{"type": "array"}]}]}]})"),
            TypeSet::kInteger | TypeSet::kNull | TypeSet::kArray);
}

TEST(CollectTypes, FollowsReferences) {
  const char* root = R"({"$defs": {"P": {"type": "object"}, "a/b": {"type": "integer"}},
                         "definitions": {"Z": {"$ref": "#/$defs/P"}}})";
  EXPECT_EQ(Types(R"({"$ref": "#/$defs/P"})", root), TypeSet::kObject);
  EXPECT_EQ(Types(R"({"allOf": [{"$ref": "#/definitions/Z"}]})", root), TypeSet::kObject);
  EXPECT_EQ(Types(R"({"$ref": "#/$defs/a~1b"})", root), TypeSet::kInteger);
  EXPECT_EQ(Types(R"({"$ref": "#/$defs/None"})", root), TypeSet::kString);
  EXPECT_EQ(Types(R"({"$ref": "http://example.com/x"})", root), TypeSet::kString);
}

TEST(CollectTypes, SurvivesCirclesAndBombs) {
  EXPECT_EQ(Types(R"({"$ref": "#/$defs/A"})", R"({"$defs": {"A": {"$ref": "#/$defs/A"}}})"),
            TypeSet::kString);
  Json root;
  const Json self = {{"$ref", "#/$defs/B"}};
  root["$defs"]["B"]["anyOf"] = Json::array({self, self, self, self, {{"type", "integer"}}});
  EXPECT_EQ(CollectTypes(self, root).bits() & ~TypeSet::kInteger, 0);
  Json deep = {{"type", "integer"}};
  for (int i = 0; i < 1000; ++i) deep = Json{{"anyOf", Json::array({deep})}};
  EXPECT_EQ(CollectTypes(deep, deep).bits(), TypeSet::kString);
}

TEST(CollectTypes, GuessesFromTheShapeWithoutAType) {
  EXPECT_EQ(Types(R"({"properties": {}})"), TypeSet::kObject);
  EXPECT_EQ(Types(R"({"additionalProperties": false})"), TypeSet::kObject);
  EXPECT_EQ(Types(R"({"items": {}})"), TypeSet::kArray);
  EXPECT_EQ(Types("{}"), TypeSet::kString);
  EXPECT_EQ(Types("true"), TypeSet::kString);
  EXPECT_EQ(Types(R"({"nullable": true, "type": "integer"})"), TypeSet::kNull | TypeSet::kInteger);
  EXPECT_EQ(Types(R"({"nullable": true})"), TypeSet::kNull | TypeSet::kString);
}

TEST(TypeValue, AStringIsVerbatimWhateverItLooksLike) {
  for (const char* text : {"null", "true", "007", "3.0", " x "}) {
    EXPECT_EQ(Value(kString, text), "\"" + std::string(text) + "\"");
  }
  EXPECT_EQ(Value(kString, "{\"a\":1}"), "\"{\\\"a\\\":1}\"");
}

TEST(TypeValue, NullFitsIfItIsAmongTheTypesOrStringIsNot) {
  EXPECT_EQ(Value(kInteger, "null"), "null");
  EXPECT_EQ(Value(kInteger, "NULL"), "null");
  EXPECT_EQ(Value(kInteger, "None"), "null");
  EXPECT_EQ(Value(R"({"type": ["string", "null"]})", "Null"), "null");
  EXPECT_EQ(Value(R"({"type": ["string", "null"]})", "None"), "\"None\"");
  EXPECT_EQ(Value(R"({"type": ["string", "integer"]})", "null"), "\"null\"");
}

TEST(TypeValue, IntegersKeepAllDigits) {
  EXPECT_EQ(Value(kInteger, " 9007199254740993\n"), "9007199254740993");
  EXPECT_EQ(Value(kInteger, "-12345678901234567890123"), "-12345678901234567890123");
  EXPECT_EQ(Value(kInteger, "+7"), "7");
  EXPECT_EQ(Value(kInteger, "5.0"), "5");
  EXPECT_EQ(Value(R"({"type": ["integer", "number"]})", "5.0"), "5.0");
  EXPECT_EQ(Value(kNumber, "9007199254740993"), "9007199254740993");
  EXPECT_EQ(Value(kInteger, "5.5"), "5.5");
}

TEST(TypeValue, NumbersAreFinite) {
  EXPECT_EQ(Value(kNumber, "-1.5e2"), "-1.5e2");
  EXPECT_EQ(Value(kNumber, "inf"), "\"inf\"!");
  EXPECT_EQ(Value(kNumber, "nan"), "\"nan\"!");
  EXPECT_EQ(Value(kNumber, "1e999"), "\"1e999\"!");
}

TEST(TypeValue, BooleansAreWordsInAnyCaseOrOneAndZero) {
  EXPECT_EQ(Value(kBoolean, "False"), "false");
  EXPECT_EQ(Value(kBoolean, "TRUE"), "true");
  EXPECT_EQ(Value(kBoolean, "1"), "true");
  EXPECT_EQ(Value(kBoolean, "0"), "false");
  EXPECT_EQ(Value(kBoolean, "yes"), "\"yes\"!");
  EXPECT_EQ(Value(R"({"type": ["boolean", "integer"]})", "1"), "1");
}

TEST(TypeValue, ObjectsAndArraysAreJsonOrPython) {
  EXPECT_EQ(Value(kObject, "{\"a\":[1]}"), R"({"a": [1]})");
  EXPECT_EQ(Value(kObject, "{'a': True, 'b': None}"), R"({"a": true, "b": null})");
  EXPECT_EQ(Value(kArray, "('a', 1)"), R"(["a", 1])");
  EXPECT_EQ(Value(R"({"type": ["array", "object"]})", "[{}]"), "[{}]");
  EXPECT_EQ(Value(kObject, "{not json"), "\"{not json\"!");
}

TEST(TypeValue, AStringAmongTheTypesComesLast) {
  const char* depart = R"({"anyOf": [{"type": "integer"}, {"type": "string"}]})";
  EXPECT_EQ(Value(depart, "30"), "30");
  EXPECT_EQ(Value(depart, " at noon"), "\" at noon\"");
  EXPECT_EQ(Value(R"({"type": ["object", "string"]})", "[1]"), "\"[1]\"");
}

TEST(TypeValue, WhatFitsNothingIsOtherJsonOrTheRawText) {
  EXPECT_EQ(Value(kObject, "[\"not\"]"), "[\"not\"]");
  EXPECT_EQ(Value(kInteger, "\"12\""), "\"12\"");
  EXPECT_EQ(Value(kInteger, " a few "), "\" a few \"!");
  EXPECT_EQ(Value(kInteger, ""), "\"\"!");
  EXPECT_EQ(Value(kAny, "5"), "5");
  EXPECT_EQ(Value(kAny, "five"), "\"five\"!");
  EXPECT_EQ(Value(kArray, "{'a': 1}"), "\"{'a': 1}\"!");
}

TEST(StringGuess, KnowsAStringAsSoonAsNothingElseFits) {
  const auto decided_at = [](uint8_t bits, std::string_view text) {
    StringGuess guess{TypeSet(static_cast<uint8_t>(bits | TypeSet::kString))};
    for (size_t i = 0; i < text.size(); ++i) {
      if (guess.Feed(text.substr(i, 1))) return static_cast<int>(i);
    }
    return -1;
  };
  EXPECT_EQ(decided_at(TypeSet::kNull, " note"), 2);
  EXPECT_EQ(decided_at(TypeSet::kNull, "null "), -1);
  EXPECT_EQ(decided_at(TypeSet::kNull, "null or so"), 5);
  EXPECT_EQ(decided_at(TypeSet::kNull, "nulls"), 4);
  EXPECT_EQ(decided_at(TypeSet::kInteger, "12"), -1);
  EXPECT_EQ(decided_at(TypeSet::kInteger, "12 apples"), 3);
  EXPECT_EQ(decided_at(TypeSet::kBoolean, "True"), -1);
  EXPECT_EQ(decided_at(TypeSet::kObject, "{x y"), -1);
  EXPECT_EQ(decided_at(TypeSet::kArray, "{x y"), 0);
  EXPECT_EQ(decided_at(TypeSet::kNull, "\n\n"), -1);
}

TEST(ParameterTypes, WhatIsNotDeclaredIsAString) {
  const Tool tool{"t", Json::parse(R"({"properties": {"n": {"type": "integer"}}})")};
  EXPECT_TRUE(ParameterTypes(&tool).Of("n").IsOnly(TypeSet::kInteger));
  EXPECT_TRUE(ParameterTypes(&tool).Of("m").IsOnly(TypeSet::kString));
  EXPECT_TRUE(ParameterTypes(nullptr).Of("n").IsOnly(TypeSet::kString));
  EXPECT_FALSE(ParameterTypes(&tool).Declares("m"));
}

}  // namespace
}  // namespace tessera::parser

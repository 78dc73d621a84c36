// The tool-call formats that carry JSON: hermes, llama3_json, mistral.
#include <string>

#include "gtest/gtest.h"
#include "services/parser/formats/output_cases.h"

namespace tessera::parser {
namespace {

ParserOptions Options(std::string_view format, bool thinking = false) {
  ParserOptions options;
  options.reasoning_format = thinking ? "qwen3" : "none";
  options.tool_format = format;
  options.tools = {ToolWith("f", "{}"), ToolWith("ping", "{}")};
  return options;
}

std::string Hermes(std::string_view text, EngineFinish finish = EngineFinish::kStop) {
  return ShowAllSplits({Options("hermes"), std::string(text), finish});
}
std::string Llama(std::string_view text, EngineFinish finish = EngineFinish::kStop) {
  return ShowAllSplits({Options("llama3_json"), std::string(text), finish});
}
std::string Mistral(std::string_view text, EngineFinish finish = EngineFinish::kStop) {
  return ShowAllSplits({Options("mistral"), std::string(text), finish});
}

TEST(Hermes, ReadsCallsAndTheTextAroundThem) {
  EXPECT_EQ(Hermes("Sure.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":[1,\"x\\n\"]}}\n"
                   "</tool_call>\n<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>Done."),
            R"(C:Sure.Done.|f{"a": [1, "x\n"]}|g{}|tool_calls)");
}

TEST(Hermes, TakesKeysInAnyOrderAndOtherNamesForThem) {
  EXPECT_EQ(Hermes(R"(<tool_call>{"id": 1, "parameters": {"a": 1}, "name": "f", "x": [{}]})"
                   "</tool_call>"),
            R"(f{"a": 1}|tool_calls)");
  EXPECT_EQ(Hermes(R"(<tool_call>{"name": "f"}</tool_call>)"), "f{}|tool_calls");
  EXPECT_EQ(Hermes(R"(<tool_call>{"name": "f", "arguments": null}</tool_call>)"), "f{}|tool_calls");
}

TEST(Hermes, DecodesArgumentsThatAreAString) {
  EXPECT_EQ(Hermes(R"(<tool_call>{"name": "f", "arguments": "{\"a\": \"q\\\"\"}"}</tool_call>)"),
            R"(f{"a": "q\""}|tool_calls)");
  EXPECT_EQ(Hermes(R"(<tool_call>{"arguments": "a few", "name": "f"}</tool_call>)"),
            R"(f{"arguments": "a few"}!|tool_calls)");
}

TEST(Hermes, WhatIsNoCallIsText) {
  for (const char* text : {"<tool_call> is a tag </tool_call>", "<tool_call>{\"a\": 1}</tool_call>",
                           "<tool_call>{\"name\": 5}", "<tool_call>\n<function=f>\n</function>",
                           "</tool_call>", "<tool_call>{", "<tool_call>{\"name\": \"f\""}) {
    EXPECT_EQ(Hermes(text), "C:" + std::string(text) + "|stop");
  }
}

TEST(Hermes, AnUnfinishedCallIsClosedToValidJson) {
  EXPECT_EQ(
      Hermes(R"(a <tool_call>{"name": "f", "arguments": {"a": "long te)", EngineFinish::kLength),
      R"(C:a|f{"a": "long te"}!|length)");
  EXPECT_EQ(
      Hermes(R"(<tool_call>{"name": "f", "arguments": {"a": 1, "b": 12)", EngineFinish::kLength),
      R"(f{"a": 1}!|length)");
  EXPECT_EQ(Hermes("a <tool_call>{\"name\": \"f", EngineFinish::kLength), "C:a |length");
}

TEST(Hermes, WhatIsNoJsonInsideACallEndsItFlagged) {
  EXPECT_EQ(Hermes(R"(<tool_call>{"name": "f", "arguments": {"a": 1 oops}}</tool_call>)"),
            R"(C:oops}}|f{"a": 1}!|tool_calls)");
}

TEST(Hermes, ADeclaredCallEndsReasoning) {
  EXPECT_EQ(ShowAllSplits({Options("hermes", true),
                           "hm <tool_call>{\"name\": \"x\"}</tool_call> no\n"
                           "<tool_call>{\"name\": \"ping\", \"arguments\": {}}</tool_call>"}),
            "R:hm <tool_call>{\"name\": \"x\"}</tool_call> no|ping{}|tool_calls");
}

TEST(Llama3Json, ReadsBareAndTaggedCalls) {
  EXPECT_EQ(Llama(R"({"name": "f", "parameters": {"a": 1}}<|eom_id|>)"), R"(f{"a": 1}|tool_calls)");
  EXPECT_EQ(Llama(R"(<|python_tag|>{"type": "function", "name": "g", "parameters": {}})"),
            "g{}|tool_calls");
  EXPECT_EQ(Llama(R"({"name": "f", "parameters": {}}; {"name": "ping", "parameters": {}})"
                  "\n"
                  R"({"name": "f", "parameters": {}})"),
            "f{}|ping{}|f{}|tool_calls");
}

TEST(Llama3Json, OtherJsonAndProseAreText) {
  for (const char* text :
       {"{\"a\": 1}", "{\"name\": \"g\", \"parameters\": {}}", "{\"name\": \"f\"}",
        "So {\"name\": \"f\", \"parameters\": {}}", "{ x", "a, b; c",
        "{\"name\": \"f\", \"parameters\": 5}", "<|python_tag|>print(1)"}) {
    EXPECT_EQ(Llama(text), "C:" + std::string(text) + "|stop");
  }
  EXPECT_EQ(Llama("{\"city\": \"Bod", EngineFinish::kLength), "C:{\"city\": \"Bod|length");
}

TEST(Mistral, ReadsArraysNamesAndIds) {
  EXPECT_EQ(Mistral(R"(Ok.[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}, )"
                    R"({"name": "ping", "arguments": {}}])"),
            R"(C:Ok.|f{"a": 1}|ping{}|tool_calls)");
  EXPECT_EQ(Mistral(R"([TOOL_CALLS]f{"a": "]"}[TOOL_CALLS]g[CALL_ID]ab12[ARGS]{"b": 2})"),
            R"(f{"a": "]"}|g{"b": 2}|tool_calls)");
}

TEST(Mistral, ACallFarBehindTheBeginningMayHaveNoArguments) {
  EXPECT_EQ(Mistral(R"([TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "ping"}])"),
            R"(f{"a": 1}|ping{}|tool_calls)");
}

TEST(Mistral, WhatIsNoCallIsText) {
  for (const char* text : {"[1, 2] [TOOL", "[TOOL_CALLS] none", "[TOOL_CALLS]f(x)", "a [b], c"}) {
    EXPECT_EQ(Mistral(text), "C:" + std::string(text) + "|stop");
  }
}

TEST(Mistral, AnUnfinishedCallIsClosedToValidJson) {
  EXPECT_EQ(Mistral(R"([TOOL_CALLS]f{"a": {"b": "x)", EngineFinish::kLength),
            R"(f{"a": {"b": "x"}}!|length)");
}

TEST(JsonFormats, SeveralParametersOfOneNameAreOne) {
  EXPECT_EQ(Mistral(R"([TOOL_CALLS]f{"a": 1, "a": 2})"), R"(f{"a": 1}!|tool_calls)");
}

}  // namespace
}  // namespace tessera::parser

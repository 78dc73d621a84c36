// Random conversations turns, written as the model's template writes them into the history, come
// back as they were.
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "services/parser/formats/output_cases.h"

namespace tessera::parser {
namespace {

using Json = nlohmann::ordered_json;

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {}

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  const std::string& Pick(const std::vector<std::string>& from) {
    return from[static_cast<size_t>(Below(static_cast<int>(from.size())))];
  }

  // Text of parts that are no markup where they stand; no white space at its ends.
  std::string Prose(const std::vector<std::string>& extra) {
    static const std::vector<std::string> kParts = {
        "word",         "x < y",      "<b>bold</b>", "naïve",      "東京",  "🐈‍⬛",
        "\"q\"",        "C:\\tmp\\n", "a\tb",        "{\"a\": 1}", "null",  "'it'",
        "</div>",       "3.0",        "<t",          "a<",         "&lt;",  "1. one\n2. two",
        "para\n\npara", "<think ",    "</thinking>", "…",          "<func", "}"};
    std::string text = "It";
    for (int i = Below(8); i > 0; --i) {
      text += Below(4) == 0 ? "\n" : " ";
      text += Below(4) == 0 && !extra.empty() ? Pick(extra) : Pick(kParts);
      text += " is";
    }
    return text;
  }

  // An argument's string: markup of calls as well, and white space at its ends.
  std::string StringValue() {
    static const std::vector<std::string> kMarkup = {
        "</parameter>",
        "</function>",
        "</tool_call>",
        "</think>",
        "<|im_end|>",
        "```\n~~~",
        "<parameter=zz>v</parameter>",
        "<tool_call> t </tool_call>",
        "<tool_call>\n<function=demo>\n<parameter=q>\nhi\n</parameter>\n</function>\n</tool_call>"};
    static const std::vector<std::string> kEdges = {"",     "",     "\n", " ",
                                                    "\n\n", "    ", "\t", "\r\n"};
    if (Below(6) == 0) return Pick({"", "null", "true", "007", "{}", "[1, 2]", "}", "None"});
    return Pick(kEdges) + Prose(kMarkup) + Pick(kEdges);
  }

  // JSON of any kind, written with one spacing.
  std::string JsonText(int depth) {
    const int kind = depth == 0 ? 2 + Below(4) : Below(6);
    std::string text;
    switch (kind) {
      case 0:
        for (int i = Below(4); i > 0; --i) text += (text.empty() ? "" : ", ") + JsonText(depth - 1);
        return "[" + text + "]";
      case 1:
        for (int i = Below(4); i > 0; --i) {
          text +=
              (text.empty() ? "\"k" : ", \"k") + std::to_string(i) + "\": " + JsonText(depth - 1);
        }
        return "{" + text + "}";
      case 2:
        return Json(StringValue()).dump();
      case 3:
        return Integer();
      case 4:
        return Pick({"true", "false", "null"});
      default:
        return Integer() + "." + std::to_string(1 + Below(99));
    }
  }

  std::string Integer() {
    std::string digits = std::to_string(1 + Below(9));
    for (int i = Below(25); i > 0; --i) digits += static_cast<char>('0' + Below(10));
    return (Below(3) == 0 ? "-" : "") + digits;
  }

  // A parameter's schema, its value as the template prints it and as JSON.
  struct Value {
    std::string schema, printed, json;
  };
  Value AnyValue() {
    std::string text;
    switch (Below(8)) {
      case 0:
        text = Integer();
        return {
            Pick({R"({"type": "integer"})", R"({"anyOf": [{"type": "integer"}, {"type": "null"}]})",
                  R"({"type": ["integer", "string"]})", R"({"enum": [1, 2]})"}),
            text, text};
      case 1:
        text = Integer() + "." + std::to_string(1 + Below(99));
        return {R"({"type": "number"})", text, text};
      case 2:
        text = Pick({"true", "false"});
        return {R"({"type": ["boolean", "null"]})", text == "true" ? "True" : "False", text};
      case 3:
        return {Pick({R"({"type": ["integer", "null"]})", R"({"oneOf": [{"type": "object"}]})"}),
                "None", "null"};
      case 4:
        text = "[" + JsonText(2) + "]";
        return {Pick({R"({"type": "array"})", R"({"items": {}})"}), text, text};
      case 5:
        text = "{\"key\": " + JsonText(2) + "}";
        return {
            Pick({R"({"type": "object"})", R"({"$ref": "#/$defs/O"})", R"({"properties": {}})"}),
            text, text};
      case 6:
        text = Prose({});
        return {R"({"type": ["string", "null"]})", text, Json(text).dump()};
      default:
        text = StringValue();
        return {
            Pick({R"({"type": "string"})", "{}", R"({"enum": ["a"]})", R"({"type": "varchar"})"}),
            text, Json(text).dump()};
    }
  }

 private:
  std::mt19937_64 random_;
};

// One turn: what the model writes and what the client has to see.
void CheckTurn(uint64_t seed) {
  Writer writer(seed);
  OutputCase turn;
  turn.options.enable_thinking = writer.Below(2) == 0;
  std::string expected;
  if (turn.options.enable_thinking) {
    const std::string reasoning = writer.Prose({"<tool_call>", "<function=f0>", "</tool_call>"});
    turn.text = reasoning + "\n</think>\n";
    expected = "R:" + reasoning + "|";
  }
  std::string content = writer.Below(2) == 0 ? "" : writer.Prose({"\n```\n<tool_call>\n```\nit"});
  const int calls = writer.Below(4);
  turn.text += content + (content.empty() ? "" : "\n");
  if (!content.empty() || calls == 0) {
    if (turn.options.enable_thinking) content.insert(0, "\n");
    if (calls == 0 && turn.text.back() == '\n' && content != "\n") content += "\n";
    if (!content.empty()) expected += "C:" + content + "|";
  }
  std::string returned;
  for (int i = 0; i < calls; ++i) {
    const std::string name = "f" + std::to_string(i);
    Json properties = Json::object();
    std::string arguments;
    turn.text += "<tool_call>\n<function=" + name + ">\n";
    for (int j = writer.Below(5); j > 0; --j) {
      const std::string key = writer.Pick({"key", "größe", "a-b.c", "a b"}) + std::to_string(j);
      const Writer::Value value = writer.AnyValue();
      properties[key] = Json::parse(value.schema);
      turn.text += "<parameter=" + key + ">\n" + value.printed + "\n</parameter>\n";
      arguments += (arguments.empty() ? "\"" : ", \"") + key + "\": " + value.json;
    }
    turn.text += "</function>\n</tool_call>\n";
    Tool& tool = turn.options.tools.emplace_back();
    tool.name = name;
    tool.parameters = {{"properties", properties}, {"$defs", {{"O", {{"type", "object"}}}}}};
    returned += name + "{" + arguments + "}|";
  }
  expected += returned + (calls > 0 ? "tool_calls" : "stop");
  EXPECT_EQ(ShowAllSplits(turn, 4), expected) << "seed " << seed << "\n" << turn.text;
}

// One call of a format that carries JSON.
struct JsonCall {
  std::string name;
  std::string arguments;  // as the client has to see them
};

JsonCall AnyJsonCall(Writer& writer, int index) {
  JsonCall call{"f" + std::to_string(index), ""};
  for (int i = writer.Below(5); i > 0; --i) {
    const std::string key =
        writer.Pick({"key", "größe", "a-b.c", "a b", "q\\\"q"}) + std::to_string(i);
    call.arguments += (call.arguments.empty() ? "\"" : ", \"") + key + "\": " + writer.JsonText(2);
  }
  call.arguments = "{" + call.arguments + "}";
  return call;
}

std::string NameAndArguments(const JsonCall& call, std::string_view key) {
  return "{\"name\": \"" + call.name + "\", \"" + std::string(key) + "\": " + call.arguments + "}";
}

// The calls as a model of the format writes them.
std::string WriteCalls(Writer& writer, std::string_view format,
                       const std::vector<JsonCall>& calls) {
  std::string text;
  const int style = writer.Below(3);
  for (const JsonCall& call : calls) {
    const bool first = text.empty();
    if (format == "hermes") {
      text += "<tool_call>\n" + NameAndArguments(call, "arguments") + "\n</tool_call>\n";
    } else if (format == "llama3_json") {
      text += (first ? "<|python_tag|>" : "; ") + NameAndArguments(call, "parameters");
    } else if (style == 0) {  // the rest are Mistral's
      text += (first ? "[TOOL_CALLS][" : ", ") + NameAndArguments(call, "arguments");
    } else {
      text +=
          "[TOOL_CALLS]" + call.name + (style == 1 ? "" : "[CALL_ID]aB3[ARGS]") + call.arguments;
    }
  }
  if (format == "mistral" && style == 0 && !calls.empty()) text += "]";
  return text;
}

void CheckJsonTurn(const std::string& format, uint64_t seed) {
  Writer writer(seed);
  OutputCase turn;
  turn.options.tool_format = format;
  turn.options.reasoning_format = "qwen3";
  turn.options.enable_thinking = writer.Below(2) == 0;
  std::string expected;
  if (turn.options.enable_thinking) {
    const std::string reasoning =
        writer.Prose({"<tool_call>", "[TOOL_CALLS]", "{\"name\": \"f0\"}"});
    turn.text = reasoning + "\n</think>";
    expected = "R:" + reasoning + "|";
  }
  std::vector<JsonCall> calls;
  for (int i = writer.Below(4); i > 0; --i) {
    calls.push_back(AnyJsonCall(writer, static_cast<int>(calls.size())));
  }
  const std::string content =
      writer.Below(2) == 0 && !calls.empty() ? "" : writer.Prose({"\n```\nit\n```\nit"});
  if (!content.empty()) expected += "C:" + content + "|";
  turn.text += content + WriteCalls(writer, format, calls);
  for (const JsonCall& call : calls) expected += call.name + call.arguments + "|";
  turn.options.tools = {{"f0", nullptr}, {"f1", nullptr}, {"f2", nullptr}};
  expected += calls.empty() ? "stop" : "tool_calls";
  EXPECT_EQ(ShowAllSplits(turn, 4), expected) << format << " seed " << seed << "\n" << turn.text;
}

TEST(OutputProperty, JsonCallsComeBack) {
  for (const char* format : {"hermes", "llama3_json", "mistral"}) {
    for (uint64_t seed = 1; seed <= 1500 && !HasFailure(); ++seed) CheckJsonTurn(format, seed);
  }
}

TEST(OutputProperty, WhatTheTemplateWritesComesBack) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    CheckTurn(seed);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace tessera::parser

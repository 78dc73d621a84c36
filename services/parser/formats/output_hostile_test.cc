// Whatever a model writes: no crash, the same in every split, valid JSON, bounded memory, linear
// time.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/parser/formats/format_registry.h"
#include "services/parser/formats/output_cases.h"

namespace tessera::parser {
namespace {

ParserOptions Options(std::string_view tool_format = "qwen3_coder") {
  ParserOptions options;
  options.tool_format = tool_format;
  options.tools = {ToolWith("f", R"({"s": {"type": "string"}, "n": {"type": "integer"},
                                     "o": {"type": ["object", "string", "null"]}})"),
                   ToolWith("ping", "{}")};
  return options;
}

// ---- Random markup

// Every piece that means something to some format, and some that do not.
const std::vector<std::string>& Pieces() {
  static const auto& pieces = *new std::vector<std::string>{"<tool_call>",
                                                            "</tool_call>",
                                                            "<function=f>",
                                                            "<function=ping>",
                                                            "<function=",
                                                            "</function>",
                                                            "<parameter=s>",
                                                            "<parameter=n>",
                                                            "<parameter=o>",
                                                            "<parameter=x",
                                                            "<parameter ",
                                                            "<parameter>",
                                                            "</parameter>",
                                                            "</think>",
                                                            "<think>",
                                                            "<|im_end|>",
                                                            "\n",
                                                            "\n",
                                                            "\r\n",
                                                            " ",
                                                            "\t",
                                                            "```",
                                                            "~~~",
                                                            "word",
                                                            "12",
                                                            "null",
                                                            "é",
                                                            "🐈",
                                                            "<",
                                                            ">",
                                                            "\xFF",
                                                            "\xE2\x82",
                                                            "{",
                                                            "}",
                                                            "[",
                                                            "]",
                                                            "\"",
                                                            "\\",
                                                            ",",
                                                            ":",
                                                            "\\u00e9",
                                                            "\"name\"",
                                                            "\"f\"",
                                                            "{\"name\": \"f\", \"arguments\": {",
                                                            "\"parameters\"",
                                                            "[TOOL_CALLS]",
                                                            "[ARGS]",
                                                            "[CALL_ID]",
                                                            "f{\"a\": 1}",
                                                            "<|python_tag|>",
                                                            "<|eom_id|>",
                                                            ";",
                                                            "true",
                                                            "{'a': None}",
                                                            "{\"a\": [1, 2]}"};
  return pieces;
}

std::string RandomMarkup(std::mt19937_64& random) {
  std::string text;
  for (uint64_t i = random() % 40; i > 0; --i) {
    std::string piece = Pieces()[random() % Pieces().size()];
    if (random() % 12 == 0) piece = piece.substr(0, random() % (piece.size() + 1));
    if (random() % 20 == 0 && !piece.empty())
      piece[random() % piece.size()] = static_cast<char>(random());
    text += piece;
  }
  return text;
}

TEST(HostileOutput, AnythingIsTheSameInEverySplitAndKeepsTheContract) {
  std::mt19937_64 random(20240607);
  for (int i = 0; i < 15000; ++i) {
    OutputCase c;
    c.options = Options(ToolFormatNames()[random() % ToolFormatNames().size()]);
    c.options.reasoning_format = ReasoningFormatNames()[random() % ReasoningFormatNames().size()];
    c.options.enable_thinking = random() % 2 == 0;
    c.options.force_nonempty_content = random() % 4 == 0;
    c.options.parallel_tool_calls = random() % 4 != 0;
    c.text = RandomMarkup(random);
    c.finish = static_cast<EngineFinish>(random() % 4);
    const std::string shown = ShowAllSplits(c, 3);
    ASSERT_TRUE(shown.rfind("SPLIT", 0) != 0 && shown.rfind("WHOLE", 0) != 0)
        << "round " << i << ", " << c.options.reasoning_format << " " << c.options.tool_format
        << ", finish " << static_cast<int>(c.finish) << "\n"
        << c.text << "\n"
        << shown;
  }
}

// ---- Limits

TEST(HostileOutput, ANameBeyondTheLimitIsText) {
  const std::string name(kNameBytesMax + 1, 'n');
  const std::string text = "</think><tool_call><function=" + name + "></function>";
  EXPECT_EQ(ShowAllSplits({Options(), text}, 3), "C:" + text.substr(8) + "|stop");
}

TEST(HostileOutput, AGapBeyondTheLookaheadOpensNothing) {
  const std::string gap(kLookaheadBytesMax + 1, '\n');
  const std::string text = "<tool_call>" + gap + "<function=f></function>";
  EXPECT_EQ(ShowAllSplits({Options(), "</think>x" + text}, 3), "C:x<tool_call>|f{}|tool_calls")
      << "the wrapper is text; behind it the function is a call without one";
}

TEST(HostileOutput, EndlessWhiteSpaceFlowsThrough) {
  SeededCallIds ids(1);
  const auto parser = *CreateOutputParser(Options(), &ids);
  std::vector<ParserEvent> events;
  parser->Push("</think>", &events);
  size_t sent = 0;
  for (int i = 0; i < 1000; ++i) {
    events.clear();
    parser->Push(std::string(1000, ' '), &events);
    for (const ParserEvent& event : events) sent += event.text.size();
  }
  EXPECT_EQ(sent, 1000 * 1000 - kWhitespaceHeldBytesMax);
}

TEST(HostileOutput, ATypedValueBeyondTheLimitIsSentAsAString) {
  ParserCounters counters;
  const std::string value(kTypedValueBytesMax + 5, '7');
  const auto events = RunCut({Options(), "<tool_call><function=f><parameter=n>" + value +
                                             "</parameter></function></tool_call>"},
                             {}, &counters);
  EXPECT_EQ(Assemble(events).tool_calls.at(0).arguments, "{\"n\": \"" + value + "\"}");
  EXPECT_EQ(counters.limits_hit, 1u);
  EXPECT_EQ(counters.raw_strings, 1u);
}

TEST(HostileOutput, CallsBeyondTheLimitAreDroppedAndCounted) {
  std::string text = "</think>";
  for (size_t i = 0; i < kToolCallsMax + 3; ++i)
    text += "<tool_call><function=ping></function></tool_call>";
  ParserCounters counters;
  const auto events = RunCut({Options(), text}, {}, &counters);
  EXPECT_EQ(Assemble(events).tool_calls.size(), kToolCallsMax);
  EXPECT_EQ(counters.calls_dropped, 3u);
}

TEST(HostileOutput, WhatIsHeldBackIsBounded) {
  // The longest questions: a name, a gap, a chain of closers in a value with something open in it.
  const size_t bound = 2 * kLookaheadBytesMax + 64;
  for (const std::string& text :
       {"</think><tool_call><function=" + std::string(20000, 'n'),
        "</think><tool_call>" + std::string(20000, ' '),
        "<tool_call><function=f><parameter=s><parameter>" + std::string(20000, '\n') +
            "</parameter>" + std::string(20000, '\n') + "</parameter>",
        [] {
          std::string chain = "<tool_call><function=f><parameter=s>";
          for (int i = 0; i < 2000; ++i) chain += "<parameter>";
          for (int i = 0; i < 2000; ++i) chain += "</parameter> ";
          return chain;
        }()}) {
    SeededCallIds ids(1);
    const auto parser = *CreateOutputParser(Options(), &ids);
    std::vector<ParserEvent> events;
    size_t worst = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      parser->Push(std::string_view(text).substr(i, 1), &events);
      worst = std::max<size_t>(worst, i + 1 - parser->decided_offset());
    }
    EXPECT_LE(worst, bound) << text.substr(0, 60);
  }
}

// ---- Time

double Seconds(const OutputCase& c, size_t piece) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    SeededCallIds ids(1);
    const auto parser = *CreateOutputParser(c.options, &ids);
    std::vector<ParserEvent> events;
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < c.text.size(); i += piece) {
      events.clear();
      parser->Push(std::string_view(c.text).substr(i, piece), &events);
    }
    parser->Finish(EngineFinish::kStop, &events);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

TEST(HostileOutput, TimeIsLinearInTheLength) {
  const std::string value = "<tool_call><function=f><parameter=s>";
  struct Pattern {
    const char* format;
    std::string head;
    std::string unit;
  };
  const Pattern patterns[] = {
      {"qwen3_coder", "", "plain words of reasoning\n"},
      {"qwen3_coder", "</think>", "<tool_call>"},
      {"qwen3_coder", "</think>", "<tool_call>\n<function=f"},
      {"qwen3_coder", "</think>", "<"},
      {"qwen3_coder", "</think>", "\n"},
      {"qwen3_coder", "</think>", "```\n"},
      {"qwen3_coder", value, "long string \"value\"\n"},
      {"qwen3_coder", value, "<"},
      {"qwen3_coder", value, "\n"},
      {"qwen3_coder", value, "</parameter>\n"},
      {"qwen3_coder", value, "<parameter></parameter></parameter> </function> "},
      {"qwen3_coder", value + std::string(11 * 20000, '<'), "</parameter>"},
      {"qwen3_coder", value, "<parameter>"},
      {"qwen3_coder", value, "\n<parameter=aaaaaaaaaaaaaaaaa"},
      {"qwen3_coder", value, "</tool_call>      "},
      {"qwen3_coder", "<tool_call><function=f>", "<parameter=n>1</parameter>"},
      {"qwen3_coder", "<tool_call><function=f><parameter=n>", "[1, {\"a\": [], \"a\": 2}], "},
      {"qwen3_coder", "<tool_call><function=f><parameter=n>[", "{\"a\": 1, \"b\": [\"x\"]}, "},
      {"qwen3_coder", "<tool_call><function=f><parameter=o>{", "'k': 1, "},
      {"hermes", "</think>", "<tool_call>{\"a\":["},
      {"hermes", "</think><tool_call>{\"name\":\"f\",\"arguments\":{", "\"a\": [1, \"x\"], "},
      {"hermes", "</think><tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"", "text \\n "},
      {"llama3_json", "</think>", "{\"name\": "},
      {"llama3_json", "</think>{\"name\": \"f\", \"parameters\": {}}", ";"},
      {"mistral", "</think>", "[TOOL_CALLS]fffff"},
  };
  for (const Pattern& pattern : patterns) {
    const auto text = [&](size_t bytes) {
      std::string made = pattern.head;
      while (made.size() < bytes) made += pattern.unit;
      return made;
    };
    const OutputCase small{Options(pattern.format), text(size_t{1} << 18)};
    const OutputCase large{Options(pattern.format), text(size_t{1} << 20)};
    for (const size_t piece : {size_t{3}, large.text.size()}) {
      const double little = Seconds(small, piece);
      const double much = Seconds(large, piece);
      // Four times the text takes four times as long; sixteen would be quadratic. The floor keeps
      // the noise of a busy machine out.
      EXPECT_LT(much, 9 * little + 0.2)
          << pattern.format << " " << pattern.head.substr(0, 60) << " + " << pattern.unit
          << " in pieces of " << piece << ": " << little << " s, then " << much << " s";
    }
  }
}

}  // namespace
}  // namespace tessera::parser

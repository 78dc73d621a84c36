// The contract of OutputParser, and the reasoning rules (chat format, part 2).
#include "services/parser/formats/output_parser.h"

#include <memory>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "services/common/field_error.h"
#include "services/parser/formats/format_registry.h"
#include "services/parser/formats/output_cases.h"

namespace tessera::parser {
namespace {

std::string Think(std::string_view text, EngineFinish finish = EngineFinish::kStop) {
  return ShowAllSplits({ParserOptions{}, std::string(text), finish});
}

std::string NoThink(std::string_view text) {
  ParserOptions options;
  options.enable_thinking = false;
  return ShowAllSplits({options, std::string(text)});
}

ParserOptions WithPing() {
  ParserOptions options;
  options.tools = {ToolWith("ping", "{}")};
  return options;
}

constexpr char kPing[] = "<tool_call>\n<function=ping>\n</function>\n</tool_call>";

TEST(Reasoning, EndsAtItsFirstEndMarker) {
  EXPECT_EQ(Think("Add them: 12.\n</think>\n\nTwelve."), "R:Add them: 12.|C:\n\nTwelve.|stop");
  EXPECT_EQ(Think("</think>Twelve."), "C:Twelve.|stop");
  EXPECT_EQ(Think("a</thinking> <think </think>b"), "R:a</thinking> <think|C:b|stop");
}

TEST(Reasoning, KeepsLeadingAndDropsTrailingWhiteSpace) {
  EXPECT_EQ(Think("  in\n \t\r\n</think>  out  "), "R:  in|C:  out  |stop");
  EXPECT_EQ(Think("\n</think>x"), "C:x|stop");
  EXPECT_EQ(Think("a \n"), "R:a|stop");
}

TEST(Reasoning, WithoutAnEndMarkerEverythingIsReasoning) {
  EXPECT_EQ(Think("Add them", EngineFinish::kLength), "R:Add them|length");
  EXPECT_EQ(Think("Add them"), "R:Add them|stop");
  EXPECT_EQ(Think(""), "stop");
}

TEST(Reasoning, DropsARepeatedOpenerAtTheVeryStartOnly) {
  EXPECT_EQ(Think(" \n<think>\nA</think>B"), "R:\nA|C:B|stop");
  EXPECT_EQ(Think("x<think>A</think>B<think>C"), "R:x<think>A|C:B<think>C|stop");
  EXPECT_EQ(Think(" <thin"), "R: <thin|stop");
}

TEST(Reasoning, WithThinkingOffTheOutputIsContent) {
  EXPECT_EQ(NoThink("Twelve.\n"), "C:Twelve.\n|stop");
  EXPECT_EQ(NoThink("</think>Twelve."), "C:Twelve.|stop");
  EXPECT_EQ(NoThink(" <think>hm\n</think>Twelve."), "R:hm|C:Twelve.|stop");
}

TEST(Reasoning, ThinkingOffImpliesContentThatIsNotEmpty) {
  EXPECT_EQ(NoThink("<think>only this"), "C:only this|stop");
}

TEST(Reasoning, LaterEndMarkersAndTheEndOfTurnAreDropped) {
  EXPECT_EQ(Think("a<|im_end|>b</think>c</think></think> d<|im_end|>"), "R:ab|C:c d|stop");
}

TEST(Reasoning, OtherMarkupIsText) {
  EXPECT_EQ(Think("x < y </ z</think><s>a</s> <b> <|im_st a<"),
            "R:x < y </ z|C:<s>a</s> <b> <|im_st a<|stop");
}

TEST(Reasoning, TheBeginningOfAMarkerAtTheEndIsText) {
  EXPECT_EQ(Think("a</thin"), "R:a</thin|stop");
  EXPECT_EQ(Think("a</think>b</thi", EngineFinish::kLength), "R:a|C:b</thi|length");
}

TEST(ForceNonemptyContent, MovesReasoningWhenContentIsBlank) {
  ParserOptions options;
  options.force_nonempty_content = true;
  EXPECT_EQ(ShowAllSplits({options, "Add them"}), "C:Add them|stop");
  EXPECT_EQ(ShowAllSplits({options, "Add them ", EngineFinish::kLength}), "C:Add them|length");
  EXPECT_EQ(ShowAllSplits({options, "Add them\n</think> \n"}), "C:Add them|stop");
  EXPECT_EQ(ShowAllSplits({options, "Add them</think>12"}), "R:Add them|C:12|stop");
  EXPECT_EQ(ShowAllSplits({options, "</think>\n\n"}), "C:\n\n|stop");
}

TEST(ForceNonemptyContent, AStreamRepeatsTheReasoningOnceAsContent) {
  ParserOptions options;
  options.force_nonempty_content = true;
  const auto events = RunCut({options, "Add them</think>\n"}, {3});
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].text + events[1].text, "Add them");
  EXPECT_EQ(events[2].kind, EventKind::kContent);
  EXPECT_TRUE(events[2].promoted);
  EXPECT_EQ(events[2].text, "Add them");
  EXPECT_EQ(events[3].kind, EventKind::kFinish);
}

TEST(ForceNonemptyContent, DoesNothingBesideACall) {
  ParserOptions options = WithPing();
  options.force_nonempty_content = true;
  EXPECT_EQ(ShowAllSplits({options, std::string("Go.\n") + kPing}), "R:Go.|ping{}|tool_calls");
}

TEST(ImplicitEnd, IsACallOfADeclaredTool) {
  const std::string text = std::string("Go. ") + kPing + "\n</think>\nDone.";
  EXPECT_EQ(ShowAllSplits({WithPing(), text}), "R:Go.|C:\n\nDone.|ping{}|tool_calls");
}

TEST(ImplicitEnd, IsNoSampleNoProseAndNoFence) {
  for (const char* reasoning :
       {"<tool_call> in prose", "<tool_call>\n<function=example>\n</function>\n</tool_call> shown",
        "<function=ping>\n</function>", "</tool_call></function>",
        "```\n<tool_call>\n<function=ping>\n</function>\n</tool_call>\n```\nshown"}) {
    EXPECT_EQ(ShowAllSplits({WithPing(), std::string(reasoning) + "</think>Hi"}),
              "R:" + std::string(reasoning) + "|C:Hi|stop");
  }
}

TEST(ImplicitEnd, TheFenceStateStartsFreshAfterReasoning) {
  EXPECT_EQ(ShowAllSplits({WithPing(), std::string("```\ncode</think>") + kPing}),
            "R:```\ncode|ping{}|tool_calls");
}

TEST(ToolChoice, NoneAndNoToolsLeaveMarkupAsText) {
  ParserOptions none = WithPing();
  none.tool_choice = ToolChoice::kNone;
  EXPECT_EQ(ShowAllSplits({none, std::string("a</think>") + kPing}),
            "R:a|C:" + std::string(kPing) + "|stop");
  EXPECT_EQ(Think(std::string("a</think>") + kPing), "R:a|C:" + std::string(kPing) + "|stop");
}

TEST(ToolChoice, RequiredAndNamedParseTheSameMarkup) {
  ParserOptions options = WithPing();
  options.tool_choice = ToolChoice::kRequired;
  EXPECT_EQ(ShowAllSplits({options, std::string("a</think>") + kPing}), "R:a|ping{}|tool_calls");
  options.tool_choice = ToolChoice::kNamed;
  options.tool_choice_name = "ping";
  EXPECT_EQ(ShowAllSplits({options, std::string("a</think>") + kPing}), "R:a|ping{}|stop");
}

TEST(ToolChoice, WithoutParallelCallsOnlyTheFirstIsReturned) {
  ParserOptions options = WithPing();
  options.parallel_tool_calls = false;
  EXPECT_EQ(ShowAllSplits({options, std::string("</think>") + kPing + kPing}), "ping{}|tool_calls");
}

TEST(FinishReason, FollowsTheTable) {
  const OutputCase call{WithPing(), std::string("</think>") + kPing};
  const auto reason = [&](EngineFinish finish) {
    return RunCut({call.options, call.text, finish}, {}).back().finish_reason;
  };
  EXPECT_EQ(reason(EngineFinish::kStop), FinishReason::kToolCalls);
  EXPECT_EQ(reason(EngineFinish::kLength), FinishReason::kLength);
  EXPECT_EQ(reason(EngineFinish::kStopString), FinishReason::kToolCalls);
  EXPECT_EQ(reason(EngineFinish::kAbort), FinishReason::kAborted);
  EXPECT_EQ(RunCut({WithPing(), "</think>x", EngineFinish::kStopString}, {}).back().finish_reason,
            FinishReason::kStop);
}

TEST(OutputParser, SaysWhenTheOnlyCallWantedIsComplete) {
  ParserOptions options = WithPing();
  options.parallel_tool_calls = false;
  SeededCallIds ids(7);
  const auto parser = *CreateOutputParser(options, &ids);
  std::vector<ParserEvent> events;
  parser->Push("</think><tool_call><function=ping>", &events);
  EXPECT_FALSE(parser->complete());
  parser->Push("</function>", &events);
  EXPECT_TRUE(parser->complete());
}

TEST(OutputParser, SendsTextAsSoonAsItIsDecided) {
  SeededCallIds ids(7);
  const auto parser = *CreateOutputParser(WithPing(), &ids);
  std::vector<ParserEvent> events;
  const auto push = [&](std::string_view text) {
    events.clear();
    parser->Push(text, &events);
    return events.empty() ? std::string() : events.back().text;
  };
  EXPECT_EQ(push("Let"), "Let");
  EXPECT_EQ(push(" "), "");
  EXPECT_EQ(push("me"), " me");
  EXPECT_EQ(push("<"), "");
  EXPECT_EQ(push("b>"), "<b>");
  EXPECT_EQ(push("</think>Hi"), "Hi");
  EXPECT_EQ(push("<tool_call>\n<function=pi"), "");
  push("ng>");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::kToolCallBegin);
  EXPECT_EQ(events[0].name, "ping");
}

TEST(CallIds, DifferWithinAndAcrossSeeds) {
  std::set<std::string> all;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SeededCallIds ids(seed);
    for (int i = 0; i < 100; ++i) all.insert(ids.NextCallId());
  }
  EXPECT_GT(all.size(), 9900u);  // neighbouring seeds may meet, a conversation has one
  SeededCallIds a(5), b(5);
  EXPECT_EQ(a.NextCallId(), b.NextCallId());
  EXPECT_EQ(a.NextCallId().size(), 29u);
}

// Pushes tokens one by one and returns how many of them were reasoning.
uint64_t CountReasoning(const ParserOptions& options, const std::vector<std::string>& tokens) {
  SeededCallIds ids(7);
  const auto parser = *CreateOutputParser(options, &ids);
  ReasoningTokenCounter counter;
  std::vector<ParserEvent> events;
  for (const std::string& token : tokens) {
    counter.Add(token.size());
    parser->Push(token, &events);
    counter.Settle(*parser);
  }
  parser->Finish(EngineFinish::kStop, &events);
  counter.Settle(*parser);
  return counter.reasoning_tokens();
}

TEST(ReasoningTokens, AreThoseBeforeTheEndMarker) {
  EXPECT_EQ(CountReasoning({}, {"Add", " them", ".", "\n", "</think>", "12", ""}), 4u);
  EXPECT_EQ(CountReasoning({}, {"Add", " <", "/th", "ing>", ".", ""}), 5u);
  EXPECT_EQ(CountReasoning({}, {"</think>", "12"}), 0u);
}

TEST(ReasoningTokens, EndWithAnImplicitEndToo) {
  EXPECT_EQ(CountReasoning(WithPing(), {"Go", "\n", "<tool_call>", "\n", "<function", "=ping", ">",
                                        "\n</function>", "\n</tool_call>", ""}),
            2u);
}

TEST(ReasoningTokens, AreNoneWithThinkingOff) {
  ParserOptions options;
  options.enable_thinking = false;
  EXPECT_EQ(CountReasoning(options, {"<think>", "a", "</think>", "b"}), 0u);
}

TEST(Counters, CountWhatAMetricShows) {
  ParserOptions options;
  options.tools = {ToolWith("f", R"({"n": {"type": "integer"}})")};
  ParserCounters counters;
  RunCut({options,
          "a<tool_call>b\xFF\n<tool_call><function=f><parameter=n>x</parameter><parameter=n>1"
          "</parameter></function>"},
         {}, &counters);
  EXPECT_EQ(counters.raw_strings, 1u);
  EXPECT_EQ(counters.markers_as_text, 1u);
  EXPECT_EQ(counters.parameters_dropped, 1u);
  EXPECT_EQ(counters.implicit_reasoning_ends, 1u);
  EXPECT_EQ(counters.malformed_calls, 1u);
  EXPECT_EQ(counters.invalid_utf8, 1u);
  EXPECT_EQ(counters.limits_hit, 0u);
}

std::string ErrorOf(const ParserOptions& options) {
  SeededCallIds ids(1);
  const auto parser = CreateOutputParser(options, &ids);
  return parser.ok() ? "" : std::string(parser.status().message());
}

TEST(CreateOutputParser, NamesTheFieldAndTheRemedy) {
  ParserOptions options;
  options.tool_format = "qwen9";
  EXPECT_EQ(ErrorOf(options),
            "tool_format: \"qwen9\" is no known format; give one of qwen3_coder, hermes, "
            "llama3_json, mistral, none");
  options = {};
  options.reasoning_format = "";
  EXPECT_NE(ErrorOf(options).find("nemotron_v3, deepseek_r1, qwen3, none"), std::string::npos);
  options = {};
  options.tool_choice = ToolChoice::kRequired;
  EXPECT_NE(ErrorOf(options).find("tool_choice"), std::string::npos);
  options = WithPing();
  options.tool_choice = ToolChoice::kNamed;
  options.tool_choice_name = "pong";
  EXPECT_NE(ErrorOf(options).find("\"pong\""), std::string::npos);
  options = WithPing();
  options.tools[0].parameters = "text";
  EXPECT_NE(ErrorOf(options).find("tools[0].function.parameters"), std::string::npos);
  nlohmann::ordered_json deep;
  for (int i = 0; i < 200; ++i) deep = nlohmann::ordered_json{{"items", deep}};
  options.tools[0].parameters = deep;
  EXPECT_NE(ErrorOf(options).find("nests deeper than 100"), std::string::npos);
  options.tools[0].name = "";
  EXPECT_NE(ErrorOf(options).find("tools[0].function.name"), std::string::npos);
}

TEST(ReasoningFormats, DeepseekAlwaysThinks) {
  ParserOptions options;
  options.reasoning_format = "deepseek_r1";
  options.enable_thinking = false;
  EXPECT_EQ(ShowAllSplits({options, "<think>\nA</think>B"}), "R:\nA|C:B|stop");
}

TEST(ReasoningFormats, Qwen3DoesNotForceContent) {
  ParserOptions options;
  options.reasoning_format = "qwen3";
  options.enable_thinking = false;
  EXPECT_EQ(ShowAllSplits({options, "<think>A"}), "R:A|stop");
  EXPECT_EQ(ShowAllSplits({options, "\n\nB"}), "C:\n\nB|stop");
}

TEST(ReasoningFormats, NoneLeavesTheMarkersAlone) {
  ParserOptions options = WithPing();
  options.reasoning_format = "none";
  EXPECT_EQ(ShowAllSplits({options, std::string("<think>A</think>\n") + kPing}),
            "C:<think>A</think>|ping{}|tool_calls");
}

TEST(GuessFormats, ReadsTheMarkersOfATemplate) {
  const auto guess = [](std::string_view text) {
    const FormatGuess g = GuessFormats(text);
    return g.reasoning_format + "+" + g.tool_format;
  };
  EXPECT_EQ(guess("<|im_start|>assistant\n<think>\n … <tool_call>\n<function=x>"),
            "nemotron_v3+qwen3_coder");
  EXPECT_EQ(guess("<tool_call>\n<function=x>"), "none+qwen3_coder");
  EXPECT_EQ(guess("<think> <tool_call>{\"name\": …}</tool_call>"), "qwen3+hermes");
  EXPECT_EQ(guess("<｜Assistant｜><think>\n"), "deepseek_r1+none");
  EXPECT_EQ(guess("[AVAILABLE_TOOLS] [TOOL_CALLS]"), "none+mistral");
  EXPECT_EQ(guess("<|python_tag|>"), "none+llama3_json");
  EXPECT_EQ(guess("{{ messages }}"), "none+none");
}

}  // namespace
}  // namespace tessera::parser

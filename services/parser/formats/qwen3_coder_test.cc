// The rules of qwen3_coder tool calls (chat format, part 3), row by row.
#include "services/parser/formats/qwen3_coder.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/parser/formats/output_cases.h"

namespace tessera::parser {
namespace {

ParserOptions Options() {
  ParserOptions options;
  options.enable_thinking = false;
  options.tools = {ToolWith("f", R"({"s": {"type": "string"}, "t": {"type": "string"},
                        "n": {"type": "integer"}, "o": {"type": ["string", "null"]}})"),
                   ToolWith("ping", "{}")};
  return options;
}

std::string Parse(std::string_view text, EngineFinish finish = EngineFinish::kStop) {
  return ShowAllSplits({Options(), std::string(text), finish});
}

std::string Cut(std::string_view text) { return Parse(text, EngineFinish::kLength); }

// A call of f around `body`, closed as the format says.
std::string Call(std::string_view body) {
  return "<tool_call>\n<function=f>\n" + std::string(body) + "</function>\n</tool_call>";
}

// What a value's text, from behind the '>' of its parameter to the end of the output, becomes.
std::string Value(std::string_view text) {
  return Parse("<tool_call>\n<function=f>\n<parameter=s>" + std::string(text));
}
constexpr char kEnd[] = "</parameter>\n</function>\n</tool_call>";

// ---- 3.1, 3.2: opening and names

TEST(Qwen3Coder, ReadsTheCanonicalForm) {
  EXPECT_EQ(Parse(Call("<parameter=s>\nVardø\n</parameter>\n<parameter=n>\n3\n</parameter>\n")),
            R"(f{"s": "Vardø", "n": 3}|tool_calls)");
}

TEST(Qwen3Coder, SeveralWrappersAndSeveralFunctionsInOneAreSeveralCalls) {
  EXPECT_EQ(Parse(Call("") + "\n\n" + Call("") + Call("")), "f{}|f{}|f{}|tool_calls");
  EXPECT_EQ(Parse("<tool_call><function=f></function>\n  <function=other>\n</function>"
                  "</tool_call>after"),
            "C:after|f{}|other{}|tool_calls");
}

TEST(Qwen3Coder, ANameEndsAtABracketANewlineOrATagAndIsTrimmed) {
  EXPECT_EQ(Parse("<tool_call><function= f >\n<parameter= s >x</parameter></function></tool_call>"),
            R"(f{"s": "x"}|tool_calls)");
  EXPECT_EQ(Parse("<tool_call><function=f\n<parameter=s>x</parameter></function></tool_call>"),
            R"(f{"s": "x"}|tool_calls)");
  EXPECT_EQ(Parse("<tool_call><function=f<parameter=s\nx</parameter></function></tool_call>"),
            R"(f{"s": "x"}!|tool_calls)");
  EXPECT_EQ(Parse("<tool_call><function=mcp__a.b-c/d é></function></tool_call>"),
            "mcp__a.b-c/d é{}|tool_calls");
}

TEST(Qwen3Coder, AnEmptyWrapperIsDropped) {
  EXPECT_EQ(Parse("a<tool_call>\n</tool_call>b"), "C:ab|stop");
}

TEST(Qwen3Coder, AnyOtherWrapperIsText) {
  for (const char* text :
       {"<tool_call> and </tool_call> tags", "<tool_call>\n{\"name\": \"f\"}\n</tool_call>",
        "<tool_call>", "<tool_call>\n<function=>x", "<tool_call>\n<func f>"}) {
    EXPECT_EQ(Parse(text), "C:" + std::string(text) + "|stop");
  }
}

TEST(Qwen3Coder, AnOpenerLeftUndecidedIsTextAtAnEndOfTurnAndDroppedAtACut) {
  for (const char* opener :
       {"<tool_ca", "<tool_call>", "<tool_call>\n<funct", "<tool_call>\n<function=f"}) {
    EXPECT_EQ(Parse("a " + std::string(opener)), "C:a " + std::string(opener) + "|stop");
    EXPECT_EQ(Cut("a " + std::string(opener)), "C:a |length");
  }
}

TEST(Qwen3Coder, AnUndeclaredNameIsPassedOnWithStrings) {
  EXPECT_EQ(Parse("<tool_call><function=g><parameter=n>1</parameter></function></tool_call>"),
            R"(g{"n": "1"}|tool_calls)");
}

TEST(Qwen3Coder, WordsBeforeTheFirstParameterAreIgnored) {
  EXPECT_EQ(Parse(Call("to <b>whom</b> <tool_call> x:\n<parameter=s>x</parameter>")),
            R"(f{"s": "x"}|tool_calls)");
}

TEST(Qwen3CoderBareFunction, IsACallAtTheStartOfALineWithADeclaredNameAndABody) {
  const std::string bare = "<function=f>\n<parameter=s>x</parameter></function>";
  EXPECT_EQ(Parse(bare), R"(f{"s": "x"}|tool_calls)");
  EXPECT_EQ(Parse("Now:\n" + bare + "</tool_call>"), R"(C:Now:|f{"s": "x"}|tool_calls)");
  EXPECT_EQ(Parse(Call("") + " " + bare), R"(f{}|f{"s": "x"}|tool_calls)");
  EXPECT_EQ(Parse("<function=ping></function>"), "ping{}|tool_calls");
}

TEST(Qwen3CoderBareFunction, IsTextAnywhereElse) {
  for (const char* text :
       {"The <function=f>\n<parameter=s>x</parameter></function>", "<function=g>\n</function>",
        "<function=f> starts it", "a\n<function=f>\n", "<function=f"}) {
    EXPECT_EQ(Parse(text), "C:" + std::string(text) + "|stop");
  }
}

TEST(Qwen3CoderBareFunction, MayStandInALineAfterALiteralWrapper) {
  EXPECT_EQ(Parse("<tool_call>Let me look.<function=ping></function></tool_call>"),
            "C:<tool_call>Let me look.|ping{}|tool_calls");
  const std::string closed = "<tool_call> opens, </tool_call> closes, <function=ping></function>";
  EXPECT_EQ(Parse(closed), "C:" + closed + "|stop");
}

// ---- 3.3: text around calls

TEST(Qwen3CoderContent, IsVerbatimWithoutCallsAndHasNoBlankEdgesWithThem) {
  EXPECT_EQ(Parse("\n1. a\n2. b\n\n"), "C:\n1. a\n2. b\n\n|stop");
  EXPECT_EQ(Parse("\n\n" + Call("") + "\n \n"), "f{}|tool_calls");
  EXPECT_EQ(Parse("A.\n\n" + Call("") + "\nB.\n" + Call("") + "C.\n"),
            "C:A.\nB.C.|f{}|f{}|tool_calls");
}

TEST(Qwen3CoderContent, EachCallSwallowsOneLateCloser) {
  EXPECT_EQ(Parse("<tool_call><function=f></function> ok </tool_call> and </tool_call>"),
            "C: ok  and </tool_call>|f{}|tool_calls");
  EXPECT_EQ(Parse("a </tool_call> b </function></parameter>"),
            "C:a </tool_call> b </function></parameter>|stop");
}

TEST(Qwen3CoderContent, MarkupInAFenceIsText) {
  const std::string fence = "```xml\n" + Call("") + "\n```\n";
  EXPECT_EQ(Parse("So:\n" + fence), "C:So:\n" + fence + "|stop");
  EXPECT_EQ(Parse(fence + Call("")), "C:" + fence.substr(0, fence.size() - 1) + "|f{}|tool_calls");
  ParserOptions options = Options();
  options.fences_are_text = false;
  EXPECT_EQ(ShowAllSplits({options, "```\n" + Call("")}), "C:```|f{}|tool_calls");
}

// ---- 3.4: extent

TEST(Qwen3CoderValue, LosesOneNewlineAtEachEnd) {
  EXPECT_EQ(Value(std::string("\n\n\n") + kEnd), R"(f{"s": "\n"}|tool_calls)");
  EXPECT_EQ(Value(std::string("\n") + kEnd), R"(f{"s": ""}|tool_calls)");
  EXPECT_EQ(Value(kEnd), R"(f{"s": ""}|tool_calls)");
  EXPECT_EQ(Value(std::string("\r\n a\t\r\n") + kEnd), R"(f{"s": " a\t"}|tool_calls)");
  EXPECT_EQ(Value(std::string("\ra\r") + kEnd), R"(f{"s": "\ra\r"}|tool_calls)");
  EXPECT_EQ(Value(std::string("\n\r\n\r\n") + kEnd), R"(f{"s": "\r\n"}|tool_calls)");
}

// ---- 3.4: what closes it

TEST(Qwen3CoderValue, ParameterEndClosesBeforeStructureAndIsDataElsewhere) {
  EXPECT_EQ(Value("x</parameter>\n<parameter=n>1</parameter></function></tool_call>"),
            R"(f{"s": "x", "n": 1}|tool_calls)");
  EXPECT_EQ(Value("x</parameter> </parameter></function></tool_call>"),
            R"(f{"s": "x"}|tool_calls)");
  EXPECT_EQ(Value("x</parameter></tool_call>"), R"(f{"s": "x"}!|tool_calls)");
  EXPECT_EQ(Value("x</parameter>" + Call("")), R"(f{"s": "x"}!|f{}|tool_calls)");
  EXPECT_EQ(Value("x</parameter>  \n"), R"(f{"s": "x"}!|tool_calls)");
  EXPECT_EQ(Value(std::string("a</parameter> b") + kEnd),
            R"(f{"s": "a</parameter> b"}|tool_calls)");
  EXPECT_EQ(Value(std::string("a</parameter><function=g>") + kEnd),
            R"(f{"s": "a</parameter><function=g>"}|tool_calls)");
}

TEST(Qwen3CoderValue, FunctionEndClosesBeforeStructureAndIsDataElsewhere) {
  EXPECT_EQ(Value("x\n</function>\n</tool_call>"), R"(f{"s": "x"}!|tool_calls)");
  EXPECT_EQ(Value("x</function><tool_call><function=ping></function>"),
            R"(f{"s": "x"}!|ping{}|tool_calls)");
  EXPECT_EQ(Value("x</function>\n<function=ping></function></tool_call>"),
            R"(f{"s": "x"}!|ping{}|tool_calls)");
  EXPECT_EQ(Value("x</function>"), R"(f{"s": "x"}!|tool_calls)");
  EXPECT_EQ(Value(std::string("a</function> b</function></parameter> c") + kEnd),
            R"(f{"s": "a</function> b</function></parameter> c"}|tool_calls)");
}

TEST(Qwen3CoderValue, CallEndClosesBeforeTheNextCallOrTheEnd) {
  EXPECT_EQ(Value("x\n</tool_call>\n"), R"(f{"s": "x"}!|tool_calls)");
  EXPECT_EQ(Value("x</tool_call>" + Call("")), R"(f{"s": "x"}!|f{}|tool_calls)");
  EXPECT_EQ(Value(std::string("a</tool_call>\n</function> b") + kEnd),
            R"(f{"s": "a</tool_call>\n</function> b"}|tool_calls)");
}

TEST(Qwen3CoderValue, TheNextParameterClosesOnlyIfItCanBeMeant) {
  EXPECT_EQ(Value("\nx\n<parameter=n>\n1\n</parameter></function></tool_call>"),
            R"(f{"s": "x", "n": 1}!|tool_calls)");
  // In a line, undeclared, the same, used before, or inside something open: data.
  for (const char* data : {"x <parameter=n>y</parameter> z", "x\n<parameter=zz>y</parameter> z",
                           "x\n<parameter=s>y</parameter> z",
                           "<function=g>\n<parameter=n>y</parameter></function> z"}) {
    std::string escaped = data;
    for (size_t at = 0; (at = escaped.find('\n', at)) != std::string::npos;) {
      escaped.replace(at, 1, "\\n");
    }
    EXPECT_EQ(Value(std::string(data) + kEnd), "f{\"s\": \"" + escaped + "\"}|tool_calls");
  }
  EXPECT_EQ(Parse(Call("<parameter=n>1</parameter><parameter=s>a\n<parameter=n>2</parameter> b"
                       "</parameter>")),
            R"(f{"n": 1, "s": "a\n<parameter=n>2</parameter> b"}|tool_calls)");
}

TEST(Qwen3CoderValue, OpenersOfCallsNeverClose) {
  for (const char* data : {"a <tool_call> b", "a <function=g> b", "a <parameter name=x> b"}) {
    EXPECT_EQ(Value(std::string(data) + kEnd),
              "f{\"s\": \"" + std::string(data) + "\"}|tool_calls");
  }
}

TEST(Qwen3CoderValue, AWholeSampleCallInAValueStaysThere) {
  EXPECT_EQ(
      Value("\nSee:\n" + Call("<parameter=s>\nhi\n</parameter>\n") + "\nThat.\n" + kEnd),
      R"(f{"s": "See:\n<tool_call>\n<function=f>\n<parameter=s>\nhi\n</parameter>\n</function>)"
      R"(\n</tool_call>\nThat."}|tool_calls)");
  EXPECT_EQ(Value(Call("<parameter=s>hi</parameter>") + kEnd + Call("")),
            R"(f{"s": "<tool_call>\n<function=f>\n<parameter=s>hi</parameter></function>)"
            R"(\n</tool_call>"}|f{}|tool_calls)");
}

TEST(Qwen3CoderValue, TheFullEndOfACallWinsOverOpenSamples) {
  EXPECT_EQ(Value(std::string("put <parameter=x> and <function=y> there\n") + kEnd),
            R"(f{"s": "put <parameter=x> and <function=y> there"}|tool_calls)");
  EXPECT_EQ(Value(std::string("<parameter>\n</parameter>") + kEnd),
            R"(f{"s": "<parameter>"}|tool_calls)");
  EXPECT_EQ(Value("<function=y> \n</function>\n</tool_call>" + Call("")),
            R"(f{"s": "<function=y> "}!|f{}|tool_calls)");
}

TEST(Qwen3CoderValue, MarkersOfReasoningAndFencesAreData) {
  EXPECT_EQ(Value(std::string("</think>\n```\n<|im_end|>") + kEnd),
            R"(f{"s": "</think>\n```\n<|im_end|>"}|tool_calls)");
}

TEST(Qwen3CoderValue, TheEndOfTurnBehindItCountsAsTheEnd) {
  EXPECT_EQ(Value("x</parameter><|im_end|>"), R"(f{"s": "x"}!|tool_calls)");
}

// ---- 3.4: repairs

TEST(Qwen3CoderRepairs, MissingClosersAreImplied) {
  EXPECT_EQ(Parse("<tool_call><function=f><parameter=s>x"), R"(f{"s": "x"}!|tool_calls)");
  EXPECT_EQ(Parse("<tool_call><function=f><parameter=n>12"), R"(f{"n": 12}!|tool_calls)");
  EXPECT_EQ(Parse("<tool_call><function=f>"), "f{}!|tool_calls");
  EXPECT_EQ(Parse("<tool_call><function=f></function>\nText."), "C:\nText.|f{}|tool_calls");
  EXPECT_EQ(Parse("<tool_call><function=f></tool_call>"), "f{}!|tool_calls");
}

TEST(Qwen3CoderRepairs, OfAParameterUsedTwiceTheFirstWins) {
  EXPECT_EQ(Parse(Call("<parameter=s>1</parameter><parameter=s>2</parameter><parameter=t>3"
                       "</parameter>")),
            R"(f{"s": "1", "t": "3"}!|tool_calls)");
}

TEST(Qwen3CoderRepairs, KeysKeepTheOrderOfTheOutput) {
  EXPECT_EQ(Parse(Call("<parameter=t>1</parameter><parameter=n>2</parameter><parameter=s>3"
                       "</parameter>")),
            R"(f{"t": "1", "n": 2, "s": "3"}|tool_calls)");
}

// ---- 3.5: cut by max_tokens

TEST(Qwen3CoderCut, FollowsTheTable) {
  EXPECT_EQ(Cut("A.\n<tool_call>\n<function=pi"), "C:A.\n|length");
  EXPECT_EQ(Cut("<tool_call>\n<function=ping>"), "ping{}!|length");
  EXPECT_EQ(Cut("<tool_call>\n<function=f>\n<parameter=s>x</parameter>\n<parameter=t"),
            R"(f{"s": "x"}!|length)");
  EXPECT_EQ(Cut("<tool_call>\n<function=f>\n<parameter=s>\nab\ncd\n"),
            R"(f{"s": "ab\ncd"}!|length)");
  EXPECT_EQ(Cut("<tool_call>\n<function=f>\n<parameter=s>x</parameter>\n<parameter=n>\n12"),
            R"(f{"s": "x"}!|length)");
  EXPECT_EQ(Cut("<tool_call>\n<function=f>\n<parameter=n>12</parameter>"), R"(f{"n": 12}!|length)");
  EXPECT_EQ(Cut(Call("<parameter=n>12</parameter>")), R"(f{"n": 12}|length)");
  EXPECT_EQ(Cut("<tool_call><function=f></function>\n"), "f{}|length");
}

TEST(Qwen3CoderCut, AStopStringClosesTheSameWay) {
  EXPECT_EQ(Parse("<tool_call>\n<function=f>\n<parameter=n>12", EngineFinish::kStopString),
            "f{}!|tool_calls");
}

TEST(Qwen3CoderCut, HalfATagBehindAStringIsNotItsText) {
  EXPECT_EQ(Cut("<tool_call>\n<function=f>\n<parameter=s>x\n</param"), R"(f{"s": "x"}!|length)");
  EXPECT_EQ(Cut("<tool_call>\n<function=f>\n<parameter=s>x</parameter>\n</func"),
            R"(f{"s": "x"}!|length)");
  EXPECT_EQ(Cut("<tool_call>\n<function=f>\n<parameter=s>x <"), R"(f{"s": "x <"}!|length)");
}

// ---- 3.7: streaming

TEST(Qwen3CoderStream, SendsAStringAsItComes) {
  SeededCallIds ids(1);
  const auto parser = *CreateOutputParser(Options(), &ids);
  std::vector<ParserEvent> events;
  const auto push = [&](std::string_view text) {
    events.clear();
    parser->Push(text, &events);
    std::string sent;
    for (const ParserEvent& event : events) sent += event.text;
    return sent;
  };
  EXPECT_EQ(push("<tool_call>\n<function=f>\n<parameter=s>"), R"({"s": ")");
  EXPECT_EQ(push("\nline one\n"), "line one");
  EXPECT_EQ(push("two \"q\""), R"(\ntwo \"q\")");
  EXPECT_EQ(push("<"), "");
  EXPECT_EQ(push("b>"), "<b>");
  EXPECT_EQ(push("\n</parameter>"), "");
  EXPECT_EQ(push("\n<parameter=o>\nnu"), R"(")");
  EXPECT_EQ(push("t"), R"(, "o": "nut)");
  EXPECT_EQ(push("s</parameter><parameter=n>"), R"(s")");
  EXPECT_EQ(push("12"), "");
  EXPECT_EQ(push("</parameter></function>"), R"(, "n": 12})");
}

TEST(Qwen3CoderStream, TypedValuesOfAStringOrNullParameter) {
  EXPECT_EQ(Parse(Call("<parameter=o>\nnull\n</parameter>")), R"(f{"o": null}|tool_calls)");
  EXPECT_EQ(Parse(Call("<parameter=o>\nnull x\n</parameter>")), R"(f{"o": "null x"}|tool_calls)");
  EXPECT_EQ(Parse(Call("<parameter=o>\n\n</parameter>")), R"(f{"o": ""}|tool_calls)");
}

}  // namespace
}  // namespace tessera::parser

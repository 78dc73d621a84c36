#include "services/cli/commands/chat/chat_printer.h"

#include <vector>

#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

using parser::v1::ChatDelta;

ChatDelta Reasoning(const std::string& text) {
  ChatDelta delta;
  delta.set_reasoning(text);
  return delta;
}

ChatDelta Content(const std::string& text) {
  ChatDelta delta;
  delta.set_content(text);
  return delta;
}

ChatDelta CallBegin(uint32_t index, const std::string& name) {
  ChatDelta delta;
  parser::v1::ToolCallDelta& call = *delta.add_tool_calls();
  call.set_index(index);
  call.set_id("call_1");
  call.set_name(name);
  return delta;
}

ChatDelta Arguments(uint32_t index, const std::string& fragment) {
  ChatDelta delta;
  parser::v1::ToolCallDelta& call = *delta.add_tool_calls();
  call.set_index(index);
  call.set_arguments_fragment(fragment);
  return delta;
}

std::string Printed(PrintStyle style, const std::vector<ChatDelta>& deltas) {
  ChatPrinter printer(style);
  std::string out;
  for (const ChatDelta& delta : deltas) printer.Append(delta, out);
  printer.End(out);
  return out;
}

std::string Plain(const std::vector<ChatDelta>& deltas) {
  return Printed(PrintStyle::kPlain, deltas);
}

TEST(ChatPrinter, MarksSectionsInWordsWhenPlain) {
  EXPECT_EQ(Plain({Reasoning("Take 248 "), Reasoning("away."), Content("\n\n13"), Content("2")}),
            "[reasoning] Take 248 away.\n[answer] 132\n");
  EXPECT_EQ(Plain({Content("132")}), "[answer] 132\n");
}

TEST(ChatPrinter, DimsReasoningInATerminal) {
  EXPECT_EQ(Printed(PrintStyle::kTerminal, {Reasoning("Hm."), Content("Yes.")}),
            "\x1b[2mHm.\x1b[0m\nYes.\n");
}

TEST(ChatPrinter, StreamsCallsWithNameAndArguments) {
  const std::vector<ChatDelta> deltas = {Content("Rolling.\n"),        CallBegin(0, "roll_dice"),
                                         Arguments(0, "{\"faces\": "), Arguments(0, "20}"),
                                         CallBegin(1, "deploy"),       Arguments(1, "{}")};
  EXPECT_EQ(Plain(deltas),
            "[answer] Rolling.\n[tool call] roll_dice {\"faces\": 20}\n[tool call] deploy {}\n");
  EXPECT_EQ(Printed(PrintStyle::kTerminal, {CallBegin(0, "f"), Arguments(0, "{}")}),
            "\x1b[36m\u2192 f\x1b[0m {}\n");
}

TEST(ChatPrinter, ShowsACallBeforeItsArgumentsAreThere) {
  ChatPrinter printer(PrintStyle::kPlain);
  std::string out;
  printer.Append(CallBegin(0, "roll_dice"), out);
  EXPECT_EQ(out, "[tool call] roll_dice ");
}

TEST(ChatPrinter, KeepsInnerNewlinesAndLeavesOuterOnesOut) {
  EXPECT_EQ(Plain({Content("\n"), Content("\n  a\n"), Content("\n"), Content("b\n\n")}),
            "[answer]   a\n\nb\n");
}

TEST(ChatPrinter, BlankTextOpensNoSection) {
  EXPECT_EQ(Plain({Reasoning("\n"), Content("\n\n"), CallBegin(0, "f"), Arguments(0, "{}")}),
            "[tool call] f {}\n");
  EXPECT_EQ(Plain({}), "");
  EXPECT_EQ(Plain({Content(" \n")}), "");
}

TEST(ChatPrinter, BlankTextOfOneSectionIsNotShownInTheNext) {
  EXPECT_EQ(Plain({Reasoning("a\n\n"), Content("b")}), "[reasoning] a\n[answer] b\n");
  EXPECT_EQ(Plain({Content("a"), CallBegin(0, "f"), Arguments(0, "{}"), Content("\n\nb")}),
            "[answer] a\n[tool call] f {}\n[answer] b\n");
}

TEST(ChatPrinter, AnySplitOfTheTextGivesTheSame) {
  const std::string text = "\n\n a\n b\t\n\nc d \n";
  const std::string whole = Plain({Content(text)});
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(Plain({Content(text.substr(0, cut)), Content(text.substr(cut))}), whole) << cut;
  }
}

TEST(ChatPrinter, TextCannotCommandTheTerminal) {
  EXPECT_EQ(Printed(PrintStyle::kTerminal, {Content("a\x1b[2Jb\x07\xC2\x9Bm\x7F\tc\u00e9")}),
            "a^[[2Jb^G^[[m^?\tc\u00e9\n");
  EXPECT_EQ(Printed(PrintStyle::kTerminal, {CallBegin(0, "\x1b]0;x")}),
            "\x1b[36m\u2192 ^[]0;x\x1b[0m \n");
  EXPECT_EQ(Plain({Content("a\x1b[2Jb")}), "[answer] a\x1b[2Jb\n");  // a file gets what came
}

TEST(ChatPrinter, IsAsNewAfterEnd) {
  ChatPrinter printer(PrintStyle::kPlain);
  std::string out;
  for (int i = 0; i < 2; ++i) {
    printer.Append(Content("a\n"), out);
    printer.End(out);
  }
  EXPECT_EQ(out, "[answer] a\n[answer] a\n");
}

TEST(StatsLine, SaysTokensSpeedAndReason) {
  parser::v1::Usage usage;
  usage.set_prompt_tokens(34);
  usage.set_completion_tokens(41);
  usage.set_reasoning_tokens(30);
  const AnswerPace pace = {
      .to_first = absl::Milliseconds(12), .rest = absl::Milliseconds(50), .tokens_rest = 40};
  EXPECT_EQ(StatsLine(usage, pace, parser::v1::FINISH_REASON_STOP),
            "prompt 34 tokens, answer 41 tokens (30 reasoning), 800.0 tokens/s, "
            "first token after 12 ms, stop");
}

TEST(StatsLine, LeavesOutWhatIsNotKnown) {
  parser::v1::Usage usage;
  usage.set_prompt_tokens(8);
  usage.set_cached_prompt_tokens(4);
  usage.set_completion_tokens(1);
  EXPECT_EQ(StatsLine(usage, {.to_first = absl::Milliseconds(3)}, parser::v1::FINISH_REASON_LENGTH),
            "prompt 8 tokens (4 cached), answer 1 token, first token after 3 ms, length");
  EXPECT_EQ(StatsLine({}, {}, parser::v1::FINISH_REASON_STOP),
            "prompt 0 tokens, answer 0 tokens, stop");
}

}  // namespace
}  // namespace tessera::cli

#include "services/cli/commands/up/output_line.h"

#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

TEST(ReadOutputLine, ALogLineBecomesASentenceWithoutItsStatusCode) {
  const OutputLine line = ReadOutputLine(
      "engine", R"({"ts":"2026-01-01T00:00:00.000Z","level":"error","service":"engine",)"
                R"("msg":"the worker was lost","reason":"UNAVAILABLE: it was killed by signal 9",)"
                R"("restart_in_s":0.1})");
  EXPECT_EQ(line.level, LineLevel::kError);
  EXPECT_EQ(line.source, "engine");
  EXPECT_EQ(line.text, "the worker was lost: it was killed by signal 9 (restart_in_s 0.1)");
}

TEST(ReadOutputLine, TheServiceOfTheLineWinsOverTheChild) {
  EXPECT_EQ(ReadOutputLine("engine", R"({"level":"info","service":"worker","msg":"x"})").source,
            "worker");
}

TEST(ReadOutputLine, AnErrorOfAProcessLosesItsOwnName) {
  const OutputLine line = ReadOutputLine("parser", "tessera-parser: --listen: is in use");
  EXPECT_EQ(line.level, LineLevel::kPlain);
  EXPECT_EQ(line.text, "--listen: is in use");
  EXPECT_TRUE(line.own_words);
  EXPECT_EQ(ReadOutputLine("parser", "tessera-engine: x").text, "tessera-engine: x");
}

TEST(ReadOutputLine, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(ReadOutputLine("a", "\x1b[31mred").text, " [31mred");
  EXPECT_EQ(ReadOutputLine("a", R"({"level":"info","msg":"a\u001b\nb"})").text, "a  b");
}

TEST(ReadOutputLine, JsonThatIsNoLogLineStaysAsItIs) {
  EXPECT_EQ(ReadOutputLine("a", R"({"x":1})").text, R"({"x":1})");
  EXPECT_EQ(ReadOutputLine("a", R"({"level":)").level, LineLevel::kPlain);
  EXPECT_EQ(ReadOutputLine("a", R"({"level":3,"msg":[1]})").level, LineLevel::kInfo);
}

TEST(ReadOutputLine, MessagesOfGrpcAreMarked) {
  EXPECT_TRUE(
      ReadOutputLine("a", R"({"level":"warning","msg":"refused","source":"grpc"})").from_grpc);
}

}  // namespace
}  // namespace tessera::cli

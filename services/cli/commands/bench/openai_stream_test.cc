#include "services/cli/commands/bench/openai_stream.h"

#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

// The role's chunk, three deltas of four tokens, a finish and the usage.
constexpr char kRunning[] =
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],"
    "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":0}}\n\n"
    "data: {\"choices\":[{\"delta\":{\"reasoning\":\"a\"}}],"
    "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n"
    ": a comment\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}],"
    "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\r\n\r\n"
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],"
    "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\n"
    "data: [DONE]\n\n";

TEST(OpenAiStream, ARunningUsageIsBelieved) {
  OpenAiStream stream;
  EXPECT_EQ(stream.Append(kRunning), 4u);
  const TrafficEnd end = stream.End();
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(end.prompt_tokens, 9u);
  EXPECT_EQ(end.output_tokens, 4u);
}

TEST(OpenAiStream, TheCutOfTheBytesChangesNothing) {
  OpenAiStream stream;
  uint32_t tokens = 0;
  for (const char byte : std::string_view(kRunning)) tokens += stream.Append({&byte, 1});
  EXPECT_EQ(tokens, 4u);
  EXPECT_EQ(stream.End().error, "");
}

TEST(OpenAiStream, WithoutARunningUsageEventsWithOutputCount) {
  OpenAiStream stream;
  uint32_t tokens = 0;
  for (const char* event :
       {R"({"choices":[{"delta":{"role":"assistant","content":""}}],"usage":null})",
        R"({"choices":[{"delta":{"reasoning_content":"a"}}],"usage":null})",
        R"({"choices":[{"delta":{"content":"b"}}]})", R"({"choices":[{"text":"c"}]})",
        R"({"choices":[{"delta":{"tool_calls":[{"index":0}]}}]})",
        R"({"choices":[{"delta":{},"finish_reason":"stop"}]})",
        R"({"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":7}})"}) {
    tokens += stream.Append(std::string("data: ") + event + "\n\n");
  }
  stream.Append("data: [DONE]\n\n");
  EXPECT_EQ(tokens, 4u);
  EXPECT_EQ(stream.End().output_tokens, 7u);  // the total is the server's
}

TEST(OpenAiStream, AServerThatNeverSpeaksOfUsageLeavesTheCountOpen) {
  OpenAiStream stream;
  EXPECT_EQ(stream.Append("data:{\"choices\":[{\"text\":\"c\"}]}\n\ndata: [DONE]\n\n"), 1u);
  EXPECT_FALSE(stream.End().output_tokens.has_value());
}

TEST(OpenAiStream, AnErrorInTheStreamIsAFailure) {
  OpenAiStream stream;
  stream.Append("data: {\"error\":{\"message\":\"the engine was lost\"}}\n\ndata: [DONE]\n\n");
  const TrafficEnd end = stream.End();
  EXPECT_EQ(end.error, "stream error");
  EXPECT_EQ(end.message, "the engine was lost");
}

TEST(OpenAiStream, AnAnswerThatStopsIsAFailure) {
  OpenAiStream stream;
  EXPECT_EQ(stream.Append("data: {\"choices\":[{\"text\":\"c\"}]}\n\n"), 1u);
  EXPECT_EQ(stream.End().error, "cut");
  EXPECT_EQ(OpenAiStream().End().error, "cut");
}

TEST(OpenAiStream, RubbishIsAFailureOnce) {
  for (const std::string& bytes :
       {std::string("data: {\n\n"), std::string("data: 3\n\n"),
        std::string("data: ") + std::string(2 * kEventLineBytesMax, 'x')}) {
    OpenAiStream stream;
    EXPECT_EQ(stream.Append(bytes), 0u);
    EXPECT_EQ(stream.Append("\ndata: {\"choices\":[{\"text\":\"c\"}]}\n\ndata: [DONE]\n\n"), 0u);
    EXPECT_EQ(stream.End().error, "bad stream");
  }
}

TEST(HttpFailure, FindsTheMessage) {
  EXPECT_EQ(HttpFailure(429, R"({"error":{"message":"full"}})").error, "HTTP 429");
  EXPECT_EQ(HttpFailure(429, R"({"error":{"message":"full"}})").message, "full");
  EXPECT_EQ(HttpFailure(500, R"({"message":"m"})").message, "m");
  EXPECT_EQ(HttpFailure(404, R"({"error":"no"})").message, "no");
  EXPECT_EQ(HttpFailure(502, "<html>").message, "<html>");
  EXPECT_EQ(HttpFailure(502, "").message, "");
}

}  // namespace
}  // namespace tessera::cli

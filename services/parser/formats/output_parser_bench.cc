// Cost of one token of about four bytes, by what it is part of. Target: at most 2 microseconds.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "benchmark/benchmark.h"
#include "services/parser/formats/output_parser.h"

namespace tessera::parser {
namespace {

constexpr size_t kTokenBytes = 4;

ParserOptions Options(std::string_view tool_format) {
  ParserOptions options;
  options.tool_format = tool_format;
  Tool tool{"write_file", nlohmann::ordered_json::parse(
                              R"({"type": "object", "properties": {"path": {"type": "string"},
                                  "content": {"type": "string"}, "rows": {"type": "array"}}})")};
  options.tools = {tool};
  return options;
}

std::string Repeat(std::string_view head, std::string_view unit, std::string_view tail) {
  std::string text(head);
  while (text.size() < 64 << 10) text += unit;
  return text.append(tail);
}

void RunTokens(benchmark::State& state, std::string_view format, const std::string& text) {
  const ParserOptions options = Options(format);
  std::vector<ParserEvent> events;
  size_t tokens = 0;
  for (auto _ : state) {
    SeededCallIds ids(1);
    const auto parser = *CreateOutputParser(options, &ids);
    for (size_t i = 0; i < text.size(); i += kTokenBytes) {
      events.clear();
      parser->Push(std::string_view(text).substr(i, kTokenBytes), &events);
      benchmark::DoNotOptimize(events.data());
      ++tokens;
    }
    parser->Finish(EngineFinish::kStop, &events);
  }
  state.counters["per_token"] = benchmark::Counter(
      static_cast<double>(tokens), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void BM_Reasoning(benchmark::State& state) {
  RunTokens(state, "qwen3_coder", Repeat("", "Then x < y, so we go on.\n", "</think>Done."));
}
BENCHMARK(BM_Reasoning);

void BM_Content(benchmark::State& state) {
  RunTokens(state, "qwen3_coder", Repeat("</think>", "- a line of *content* here\n", ""));
}
BENCHMARK(BM_Content);

void BM_LongString(benchmark::State& state) {
  RunTokens(
      state, "qwen3_coder",
      Repeat("</think><tool_call>\n<function=write_file>\n<parameter=content>\n",
             "  if (a < b) printf(\"%d\\n\", a);\n", "\n</parameter>\n</function>\n</tool_call>"));
}
BENCHMARK(BM_LongString);

void BM_ManyCalls(benchmark::State& state) {
  RunTokens(state, "qwen3_coder",
            Repeat("</think>",
                   "<tool_call>\n<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n"
                   "<parameter=rows>\n[1, 2, {\"a\": true}]\n</parameter>\n</function>\n"
                   "</tool_call>\n",
                   ""));
}
BENCHMARK(BM_ManyCalls);

void BM_HermesArguments(benchmark::State& state) {
  RunTokens(state, "hermes",
            Repeat("</think><tool_call>{\"name\": \"write_file\", \"arguments\": {\"content\": \"",
                   "some text \\n ", "\"}}</tool_call>"));
}
BENCHMARK(BM_HermesArguments);

}  // namespace
}  // namespace tessera::parser

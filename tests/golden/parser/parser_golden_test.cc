// Every golden case through the line function of `tessera parse` and through the machine itself.
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "services/cli/commands/parse/parse_command.h"
#include "services/parser/formats/output_cases.h"

namespace tessera::parser {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSplits = 200;
constexpr uint64_t kStreams = 10;
constexpr size_t kShortBytes = 2000;

std::vector<Json> LoadCases() {
  std::vector<Json> cases;
  for (const char* name : {"reasoning", "tools", "both"}) {
    std::ifstream file("tests/golden/parser/" + std::string(name) + ".jsonl");
    for (std::string line; std::getline(file, line);) cases.push_back(Json::parse(line));
  }
  return cases;
}

std::string Squeeze(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!space) {
      out.push_back(c);
    } else if (!out.empty() && out.back() != ' ') {
      out.push_back(' ');
    }
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// Types count, but 5 and 5.0 are one number. Keys in order.
bool Same(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    return a.is_number_float() || b.is_number_float() ? a.get<double>() == b.get<double>() : a == b;
  }
  if (a.type() != b.type()) return false;
  if (!a.is_structured()) return a == b;
  if (a.size() != b.size()) return false;
  for (auto x = a.begin(), y = b.begin(); x != a.end(); ++x, ++y) {
    if (a.is_object() && x.key() != y.key()) return false;
    if (!Same(*x, *y)) return false;
  }
  return true;
}

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

// "" or what is wrong with `message`.
std::string Judge(const Json& expect, const Json& message, const Json& finish_reason) {
  if (TextOf(message["reasoning"]) != TextOf(expect["reasoning"])) {
    return "reasoning " + message["reasoning"].dump();
  }
  const Json calls = message.contains("tool_calls") ? message["tool_calls"] : Json::array();
  std::string content = TextOf(message["content"]);
  std::string expected = TextOf(expect["content"]);
  if (!expect["tool_calls"].empty()) {
    if (!content.empty() && std::string(" \n\r\t").find(content.back()) != std::string::npos) {
      return "content beside a call is blank or ends in white space: " + message["content"].dump();
    }
    content = Squeeze(content);
    expected = Squeeze(expected);
  }
  if (content != expected) return "content " + message["content"].dump();
  if (calls.size() != expect["tool_calls"].size()) return "calls " + calls.dump();
  for (size_t i = 0; i < calls.size(); ++i) {
    const Json& want = expect["tool_calls"][i];
    const Json& got = calls[i]["function"];
    if (got["name"] != want["name"] ||
        !Same(Json::parse(got["arguments"].get<std::string>()), want["arguments"])) {
      return "call " + got.dump();
    }
  }
  return finish_reason == expect["finish_reason"] ? "" : "finish_reason " + finish_reason.dump();
}

// The deltas of a stream put together.
Json Joined(const Json& deltas) {
  Json message = {{"reasoning", nullptr}, {"content", nullptr}};
  for (const Json& delta : deltas) {
    for (const char* channel : {"reasoning", "content"}) {
      if (delta.contains(channel))
        message[channel] = TextOf(message[channel]) + TextOf(delta[channel]);
    }
    if (!delta.contains("tool_calls")) continue;
    for (const Json& call : delta["tool_calls"]) {
      const size_t index = call["index"].get<size_t>();
      if (call.contains("id")) {
        EXPECT_EQ(index, message.contains("tool_calls") ? message["tool_calls"].size() : 0u);
        message["tool_calls"].push_back(call);
      } else {
        Json& arguments = message["tool_calls"][index]["function"]["arguments"];
        arguments = TextOf(arguments) + TextOf(call["function"]["arguments"]);
      }
    }
  }
  return message;
}

OutputCase CaseOf(const Json& c) {
  OutputCase run{*cli::ReadParserOptions(cli::ParseSettings(), c), TextOf(c["text"])};
  if (c["finish"] == "length") run.finish = EngineFinish::kLength;
  return run;
}

TEST(ParserGolden, EveryCaseIsRightWholeAndStreamed) {
  const std::vector<Json> cases = LoadCases();
  ASSERT_EQ(cases.size(), 194u);
  for (const Json& c : cases) {
    cli::ParseSettings settings;
    const Json whole = *cli::ParseLine(settings, c);
    EXPECT_EQ(Judge(c["expect"], whole["message"], whole["finish_reason"]), "") << c["id"];
    const Json& expect_stream = c.contains("expect_stream") ? c["expect_stream"] : c["expect"];
    for (uint64_t seed = 0; seed < kStreams; ++seed) {
      settings.stream_seed = seed;
      const Json stream = *cli::ParseLine(settings, c);
      EXPECT_EQ(Judge(expect_stream, Joined(stream["deltas"]), stream["finish_reason"]), "")
          << c["id"] << " seed " << seed;
    }
  }
}

TEST(ParserGolden, EveryEventOfEveryCaseIsTheSameInEverySplit) {
  for (const Json& c : LoadCases()) {
    const OutputCase run = CaseOf(c);
    const std::string shown = ShowAllSplits(run, kSplits);
    EXPECT_TRUE(shown.rfind("SPLIT", 0) != 0 && shown.rfind("WHOLE", 0) != 0)
        << c["id"] << "\n"
        << shown;
  }
}

TEST(ParserGolden, EveryShortCaseIsTheSameCutAtAnyOnePlace) {
  for (const Json& c : LoadCases()) {
    const OutputCase run = CaseOf(c);
    if (run.text.size() > kShortBytes) continue;
    const std::string whole = ShowEvents(RunCut(run, {}));
    for (size_t cut = 1; cut < run.text.size(); ++cut) {
      ASSERT_EQ(ShowEvents(RunCut(run, {cut})), whole) << c["id"] << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace tessera::parser

#include "services/parser/formats/output_cases.h"

#include <cstdlib>
#include <memory>
#include <random>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace tessera::parser {
namespace {

bool IsUtf8(std::string_view text) {
  // The JSON library checks strings as it writes them.
  const nlohmann::json value = std::string(text);
  const std::string written = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(written).get<std::string>() == text;
}

std::string CheckText(const ParserEvent& event) {
  if (event.text.empty()) return "an empty text event";
  if (!IsUtf8(event.text)) return "a text event that is not UTF-8";
  return "";
}

}  // namespace

Tool ToolWith(std::string_view name, std::string_view properties_json) {
  nlohmann::ordered_json schema = {{"type", "object"}};
  schema["properties"] = nlohmann::ordered_json::parse(properties_json);
  return Tool{std::string(name), schema};
}

std::vector<ParserEvent> RunCut(const OutputCase& c, const std::vector<size_t>& cuts,
                                ParserCounters* counters) {
  SeededCallIds ids(1);
  absl::StatusOr<std::unique_ptr<OutputParser>> parser = CreateOutputParser(c.options, &ids);
  if (!parser.ok()) std::abort();
  std::vector<ParserEvent> all;
  size_t at = 0;
  const auto push = [&](size_t end) {
    // An event vector of its own for each piece, as the service has.
    std::vector<ParserEvent> events;
    (*parser)->Push(std::string_view(c.text).substr(at, end - at), &events);
    all.insert(all.end(), events.begin(), events.end());
    at = end;
  };
  for (const size_t cut : cuts) push(cut);
  push(c.text.size());
  (*parser)->Finish(c.finish, &all);
  if (counters != nullptr) *counters = (*parser)->counters();
  return all;
}

std::vector<size_t> EveryByte(std::string_view text) {
  std::vector<size_t> cuts;
  for (size_t i = 1; i < text.size(); ++i) cuts.push_back(i);
  return cuts;
}

std::vector<size_t> RandomCuts(std::string_view text, uint64_t seed) {
  std::mt19937_64 random(seed);
  // Some splits are fine, some are coarse.
  const uint64_t piece_max = uint64_t{1} << (random() % 8);
  std::vector<size_t> cuts;
  for (size_t at = 1 + random() % piece_max; at < text.size(); at += 1 + random() % piece_max) {
    cuts.push_back(at);
  }
  return cuts;
}

std::string Show(const std::vector<ParserEvent>& events) {
  const ParsedMessage message = Assemble(events);
  std::string shown;
  if (message.reasoning.has_value()) shown += "R:" + *message.reasoning + "|";
  if (message.content.has_value()) shown += "C:" + *message.content + "|";
  for (const ParsedToolCall& call : message.tool_calls) {
    shown += call.name + call.arguments + (call.malformed ? "!|" : "|");
  }
  return shown + std::string(FinishReasonName(message.finish_reason));
}

std::string CheckStream(const std::vector<ParserEvent>& events) {
  int calls = 0;
  bool open = false;
  for (size_t i = 0; i < events.size(); ++i) {
    const ParserEvent& event = events[i];
    std::string wrong;
    switch (event.kind) {
      case EventKind::kReasoning:
      case EventKind::kContent:
        wrong = open ? "text inside a call" : CheckText(event);
        break;
      case EventKind::kToolCallBegin:
        if (open || event.call_index != calls || event.id.empty() || event.name.empty()) {
          wrong = "a call that does not begin in order, with id and name";
        }
        open = true;
        ++calls;
        break;
      case EventKind::kArguments:
        wrong =
            !open || event.call_index != calls - 1 ? "arguments of no open call" : CheckText(event);
        break;
      case EventKind::kToolCallEnd:
        if (!open || event.call_index != calls - 1) wrong = "the end of no open call";
        open = false;
        break;
      case EventKind::kFinish:
        if (i + 1 != events.size() || open) wrong = "a finish that is not the end";
        break;
    }
    if (!wrong.empty()) return "event " + std::to_string(i) + ": " + wrong;
  }
  if (events.empty() || events.back().kind != EventKind::kFinish) return "no finish";
  for (const ParsedToolCall& call : Assemble(events).tool_calls) {
    const auto arguments = nlohmann::json::parse(call.arguments, nullptr, false);
    if (!arguments.is_object()) return "arguments are no JSON object: " + call.arguments;
  }
  return "";
}

std::string ShowEvents(const std::vector<ParserEvent>& events) {
  std::string shown;
  const ParserEvent* last = nullptr;
  for (const ParserEvent& event : events) {
    const bool joins = last != nullptr && last->kind == event.kind && !event.promoted &&
                       !last->promoted && !event.text.empty();
    last = &event;
    if (!joins) {
      shown += "\n" + std::to_string(static_cast<int>(event.kind)) + " " +
               std::to_string(event.call_index) + " " + event.id + " " + event.name +
               (event.promoted ? " promoted " : " ") + (event.malformed ? "malformed " : "") +
               std::string(FinishReasonName(event.finish_reason)) + ": ";
    }
    shown += event.text;
  }
  return shown;
}

std::string ShowAllSplits(const OutputCase& c, int splits) {
  ParserCounters whole_counters;
  const std::vector<ParserEvent> whole = RunCut(c, {}, &whole_counters);
  const std::string expected = ShowEvents(whole);
  if (std::string wrong = CheckStream(whole); !wrong.empty()) return "WHOLE: " + wrong;
  for (int i = -1; i < splits; ++i) {
    const std::vector<size_t> cuts =
        i < 0 ? EveryByte(c.text) : RandomCuts(c.text, static_cast<uint64_t>(i));
    ParserCounters counters;
    const std::vector<ParserEvent> events = RunCut(c, cuts, &counters);
    std::string wrong = CheckStream(events);
    if (wrong.empty() && ShowEvents(events) != expected) {
      wrong = ShowEvents(events) + "\nand not " + expected;
    }
    if (wrong.empty() && counters != whole_counters) wrong = "other counters";
    if (!wrong.empty()) return "SPLIT " + std::to_string(i) + ": " + wrong;
  }
  return Show(whole);
}

}  // namespace tessera::parser

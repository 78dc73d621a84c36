#include "services/parser/formats/output_parser.h"

#include <algorithm>
#include <utility>

#include "services/common/field_error.h"
#include "services/parser/formats/format_registry.h"
#include "services/parser/formats/output_machine.h"

namespace tessera::parser {
namespace {

absl::Status CheckTools(const ParserOptions& options) {
  if (options.tools.size() > kToolsMax) {
    return services::InvalidField("tools", "has " + std::to_string(options.tools.size()) +
                                               " entries; the limit is " +
                                               std::to_string(kToolsMax));
  }
  for (size_t i = 0; i < options.tools.size(); ++i) {
    const Tool& tool = options.tools[i];
    const std::string field = "tools[" + std::to_string(i) + "]";
    if (tool.name.empty()) {
      return services::InvalidField(field + ".function.name", "is empty; give the tool a name");
    }
    if (tool.name.size() > kNameBytesMax) {
      return services::InvalidField(field + ".function.name",
                                    "has " + std::to_string(tool.name.size()) +
                                        " bytes; the limit is " + std::to_string(kNameBytesMax));
    }
    if (!tool.parameters.is_null() && !tool.parameters.is_object()) {
      return services::InvalidField(field + ".function.parameters",
                                    std::string("is of type ") + tool.parameters.type_name() +
                                        "; give a JSON schema, which is an object");
    }
    if (NestsTooDeep(tool.parameters)) {
      return services::InvalidField(
          field + ".function.parameters",
          "nests deeper than " + std::to_string(kSchemaNestingMax) + " levels; flatten the schema");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckToolChoice(const ParserOptions& options) {
  if (options.tool_choice == ToolChoice::kRequired && options.tools.empty()) {
    return services::InvalidField("tool_choice", "is \"required\" but there are no tools");
  }
  if (options.tool_choice != ToolChoice::kNamed) return absl::OkStatus();
  const bool declared =
      std::any_of(options.tools.begin(), options.tools.end(),
                  [&](const Tool& tool) { return tool.name == options.tool_choice_name; });
  if (declared) return absl::OkStatus();
  return services::InvalidField("tool_choice", "names the function \"" + options.tool_choice_name +
                                                   "\", which is none of the tools; declare it");
}

}  // namespace

bool NestsTooDeep(const nlohmann::ordered_json& schema) {
  std::vector<std::pair<const nlohmann::ordered_json*, int>> open = {{&schema, 0}};
  while (!open.empty()) {
    const auto [at, depth] = open.back();
    open.pop_back();
    if (depth > kSchemaNestingMax) return true;
    if (!at->is_structured()) continue;
    for (const auto& child : *at) open.emplace_back(&child, depth + 1);
  }
  return false;
}

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
    case FinishReason::kAborted:
      return "aborted";
  }
  return "stop";
}

std::string SeededCallIds::NextCallId() {
  constexpr std::string_view kAlphabet =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr size_t kLetters = 24;
  std::string id = "call_";
  uint64_t bits = 0;
  for (size_t i = 0; i < kLetters; ++i) {
    if (i % 8 == 0) {  // splitmix64: eight letters of six bits from each step
      state_ += 0x9E3779B97F4A7C15;
      bits = state_;
      bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
      bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
      bits ^= bits >> 31;
    }
    id.push_back(kAlphabet[(bits & 0xFF) % kAlphabet.size()]);
    bits >>= 8;
  }
  return id;
}

void ReasoningTokenCounter::Add(size_t text_bytes) {
  open_.push_back(offset_);
  offset_ += text_bytes;
}

void ReasoningTokenCounter::Settle(const OutputParser& parser) {
  // What is held back belongs to either side; what is decided is on the side of its offset.
  const uint64_t decided = parser.decided_offset();
  const uint64_t end = parser.reasoning_end_offset();
  size_t settled = 0;
  for (; settled < open_.size() && open_[settled] < decided; ++settled) {
    if (open_[settled] < end) ++reasoning_tokens_;
  }
  open_.erase(open_.begin(), open_.begin() + static_cast<ptrdiff_t>(settled));
}

absl::StatusOr<std::unique_ptr<OutputParser>> CreateOutputParser(const ParserOptions& options,
                                                                 CallIdSource* ids) {
  if (absl::Status s = CheckFormatNames(options.reasoning_format, options.tool_format); !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckTools(options); !s.ok()) return s;
  if (absl::Status s = CheckToolChoice(options); !s.ok()) return s;
  return {std::make_unique<OutputMachine>(options, ids)};
}

ParsedMessage Assemble(const std::vector<ParserEvent>& events) {
  ParsedMessage message;
  const auto append = [](std::optional<std::string>& channel, const std::string& text) {
    if (!channel.has_value()) channel.emplace();
    channel->append(text);
  };
  for (const ParserEvent& event : events) {
    switch (event.kind) {
      case EventKind::kReasoning:
        append(message.reasoning, event.text);
        break;
      case EventKind::kContent:
        append(message.content, event.text);
        if (event.promoted) message.reasoning.reset();
        break;
      case EventKind::kToolCallBegin:
        message.tool_calls.emplace_back();
        message.tool_calls.back().id = event.id;
        message.tool_calls.back().name = event.name;
        break;
      case EventKind::kArguments:
        message.tool_calls.back().arguments.append(event.text);
        break;
      case EventKind::kToolCallEnd:
        message.tool_calls.back().malformed = event.malformed;
        break;
      case EventKind::kFinish:
        message.finish_reason = event.finish_reason;
        break;
    }
  }
  return message;
}

}  // namespace tessera::parser

#include "services/parser/formats/reasoning_format.h"

namespace tessera::parser {
namespace {

constexpr ReasoningFormat kFormats[] = {
    {"nemotron_v3", "<think>", "</think>", "<|im_end|>", /*always_thinks=*/false,
     /*off_forces_content=*/true},
    // R1 has no switch: its template always opens the block.
    {"deepseek_r1", "<think>", "</think>", "<｜end▁of▁sentence｜>", /*always_thinks=*/true,
     /*off_forces_content=*/false},
    {"qwen3", "<think>", "</think>", "<|im_end|>", /*always_thinks=*/false,
     /*off_forces_content=*/false},
    {"none", "", "", "", /*always_thinks=*/false, /*off_forces_content=*/false},
};

}  // namespace

std::vector<std::string_view> ReasoningFormatTable() {
  std::vector<std::string_view> names;
  for (const ReasoningFormat& format : kFormats) names.push_back(format.name);
  return names;
}

const ReasoningFormat* FindReasoningFormat(std::string_view name) {
  for (const ReasoningFormat& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace tessera::parser

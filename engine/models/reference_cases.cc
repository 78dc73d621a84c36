#include "engine/models/reference_cases.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "nlohmann/json.hpp"

namespace tessera::engine {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::abort();
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<ReferenceCase> ReadReferenceCases(const std::string& folder) {
  const auto json = nlohmann::json::parse(ReadFile(folder + "/expected.json"));
  const std::string tensors = ReadFile(folder + "/expected.safetensors");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, tensors.data(), 8);
  const auto header = nlohmann::json::parse(tensors.substr(8, header_bytes));
  std::vector<ReferenceCase> cases;
  for (const auto& entry : json.at("cases")) {
    ReferenceCase one;
    for (uint32_t id : entry.at("prompt")) one.prompt.push_back(TokenId(id));
    entry.at("logit_positions").get_to(one.logit_positions);
    for (const auto& step : entry.at("greedy")) {
      one.greedy.push_back({TokenId(step.at("id").get<uint32_t>()), step.at("margin")});
    }
    const auto& tensor = header.at("case" + std::to_string(cases.size()) + ".logits");
    const uint64_t begin = tensor.at("data_offsets")[0], end = tensor.at("data_offsets")[1];
    one.logits.resize((end - begin) / sizeof(float));
    std::memcpy(one.logits.data(), tensors.data() + 8 + header_bytes + begin, end - begin);
    cases.push_back(std::move(one));
  }
  return cases;
}

SequenceDriver::SequenceDriver(SlotId slot, uint32_t first_block, uint32_t block_count)
    : slot_(slot) {
  for (uint32_t i = block_count; i > 0; --i) blocks_.push_back(BlockId(first_block + i - 1));
}

SequenceChunk SequenceDriver::Next(std::span<const TokenId> tokens,
                                   std::span<const uint32_t> logit_offsets) {
  const SequenceChunk chunk = {.slot = slot_,
                               .zero_slot = position_ == 0,
                               .position = position_,
                               .tokens = tokens,
                               .block_table = blocks_,
                               .logit_offsets = logit_offsets};
  position_ += static_cast<uint32_t>(tokens.size());
  return chunk;
}

}  // namespace tessera::engine

#include "services/cli/commands/model/model_runner.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/weights/model_config.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

constexpr uint32_t kBlockTokens = 16;
constexpr uint32_t kChunkMax = 4096;
constexpr uint32_t kSequencesMax = 256;

}  // namespace

absl::StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Open(const RunnerOptions& options) {
  if (options.chunk < 1 || options.chunk > kChunkMax) {
    return services::InvalidField("--chunk",
                                  absl::StrCat("is ", options.chunk, "; give 1 to ", kChunkMax));
  }
  if (options.sequences < 1 || options.sequences > kSequencesMax) {
    return services::InvalidField(
        "--batch", absl::StrCat("is ", options.sequences, "; give 1 to ", kSequencesMax));
  }
  const absl::StatusOr<engine::ModelConfig> config = engine::LoadModelConfig(options.model);
  if (!config.ok()) return config.status();
  const uint32_t context = std::min(config->context_tokens_max, kRunnerTokensMax);
  const uint32_t tokens_max =
      options.tokens_max == 0 ? context : std::min(options.tokens_max, context);
  const uint32_t blocks = (tokens_max + kBlockTokens - 1) / kBlockTokens;
  std::vector<std::string> warnings;
  absl::StatusOr<std::unique_ptr<engine::Model>> model =
      engine::LoadCpuModel(options.model,
                           {.slots = options.sequences,
                            .blocks = blocks * options.sequences,
                            .block_tokens = kBlockTokens,
                            .step_tokens_max = std::max(options.chunk, options.sequences),
                            .logit_rows_max = std::max(options.chunk, options.sequences),
                            .threads = options.threads},
                           nullptr, &warnings);
  if (!model.ok()) return model.status();
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "tessera: %s\n", warning.c_str());
  }
  return std::unique_ptr<ModelRunner>(new ModelRunner(options, *std::move(model), tokens_max));
}

ModelRunner::ModelRunner(const RunnerOptions& options, std::unique_ptr<engine::Model> model,
                         uint32_t tokens_max)
    : options_(options),
      model_(std::move(model)),
      tokens_max_(tokens_max),
      positions_(options.sequences, 0),
      step_logits_(size_t{options.sequences} * model_->shape().vocab) {
  const uint32_t blocks = (tokens_max + kBlockTokens - 1) / kBlockTokens;
  for (uint32_t i = 0; i < options.sequences; ++i) {
    std::vector<engine::BlockId>& table = blocks_.emplace_back();
    for (uint32_t b = 0; b < blocks; ++b) table.push_back(engine::BlockId(i * blocks + b));
  }
}

absl::StatusOr<std::vector<float>> ModelRunner::Append(uint32_t index,
                                                       std::span<const engine::TokenId> tokens,
                                                       std::span<const uint32_t> offsets) {
  if (positions_[index] + tokens.size() > tokens_max_) {
    return absl::OutOfRangeError(absl::StrCat("prompt: ", positions_[index] + tokens.size(),
                                              " tokens; the context has ", tokens_max_));
  }
  const uint32_t vocab = model_->shape().vocab;
  std::vector<float> logits(offsets.size() * vocab);
  size_t row = 0;
  for (size_t begin = 0; begin < tokens.size(); begin += options_.chunk) {
    const size_t count = std::min<size_t>(options_.chunk, tokens.size() - begin);
    std::vector<uint32_t> here;
    for (uint32_t offset : offsets) {
      if (offset >= begin && offset < begin + count) {
        here.push_back(offset - static_cast<uint32_t>(begin));
      }
    }
    const engine::SequenceChunk chunk = {.slot = engine::SlotId(index),
                                         .zero_slot = positions_[index] == 0,
                                         .position = positions_[index],
                                         .tokens = tokens.subspan(begin, count),
                                         .block_table = blocks_[index],
                                         .logit_offsets = here};
    const absl::Status status =
        model_->Forward({&chunk, 1}, std::span(logits).subspan(row * vocab, here.size() * vocab));
    if (!status.ok()) return status;
    row += here.size();
    positions_[index] += static_cast<uint32_t>(count);
  }
  return logits;
}

absl::StatusOr<std::span<const float>> ModelRunner::Step(std::span<const engine::TokenId> tokens) {
  static constexpr uint32_t kFirst[] = {0};
  std::vector<engine::SequenceChunk> chunks;
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    if (positions_[i] >= tokens_max_) {
      return absl::OutOfRangeError(absl::StrCat("the context has ", tokens_max_, " tokens"));
    }
    chunks.push_back({.slot = engine::SlotId(i),
                      .zero_slot = positions_[i] == 0,
                      .position = positions_[i],
                      .tokens = tokens.subspan(i, 1),
                      .block_table = blocks_[i],
                      .logit_offsets = kFirst});
  }
  const std::span<float> logits =
      std::span(step_logits_).first(tokens.size() * model_->shape().vocab);
  if (absl::Status status = model_->Forward(chunks, logits); !status.ok()) return status;
  for (uint32_t i = 0; i < tokens.size(); ++i) ++positions_[i];
  return std::span<const float>(logits);
}

}  // namespace tessera::cli

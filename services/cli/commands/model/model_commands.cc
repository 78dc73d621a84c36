#include "services/cli/commands/model/model_commands.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/token_history.h"
#include "engine/weights/model_config.h"
#include "services/cli/line_filter.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;
using engine::TokenId;
using services::InvalidField;

constexpr size_t kPositionsMax = 4096;

// A whole number from 0 up, however it was written.
bool IsCount(const Json& value) {
  return value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
}

absl::StatusOr<std::vector<uint32_t>> ReadIds(const Json& line, const char* field, uint64_t end,
                                              const char* of, size_t count_max) {
  const auto found = line.find(field);
  if (found == line.end() || !found->is_array()) {
    return InvalidField(field, "is missing; give a list of whole numbers");
  }
  if (found->size() > count_max) {
    return InvalidField(field,
                        absl::StrCat("has ", found->size(), " entries; the limit is ", count_max));
  }
  std::vector<uint32_t> ids;
  for (const Json& entry : *found) {
    const std::string name = absl::StrCat(field, "[", ids.size(), "]");
    if (!IsCount(entry)) return InvalidField(name, "is not a whole number from 0 up");
    if (entry.get<uint64_t>() >= end) {
      return InvalidField(name, absl::StrCat("is ", entry.get<uint64_t>(), "; ", of, " ", end));
    }
    ids.push_back(entry.get<uint32_t>());
  }
  return ids;
}

absl::StatusOr<std::vector<TokenId>> ReadPrompt(const ModelRunner& runner, const Json& line) {
  if (!line.is_object()) return absl::InvalidArgumentError("the line is no JSON object");
  absl::StatusOr<std::vector<uint32_t>> ids =
      ReadIds(line, "prompt", runner.shape().vocab, "the vocabulary has", runner.tokens_max());
  if (!ids.ok()) return ids.status();
  if (ids->empty()) return InvalidField("prompt", "is empty; give at least one token");
  std::vector<TokenId> prompt;
  for (uint32_t id : *ids) prompt.push_back(TokenId(id));
  return prompt;
}

absl::Status ReadNumber(const Json& line, const char* field, double low, double high,
                        float& value) {
  const auto found = line.find(field);
  if (found == line.end() || found->is_null()) return absl::OkStatus();
  if (!found->is_number() || !(found->get<double>() >= low) || !(found->get<double>() <= high)) {
    return InvalidField(field, absl::StrCat("is ", found->dump(), "; give ", low, " to ", high));
  }
  value = found->get<float>();
  return absl::OkStatus();
}

absl::Status ReadCount(const Json& line, const char* field, uint64_t low, uint64_t high,
                       uint64_t& value) {
  const auto found = line.find(field);
  if (found == line.end() || found->is_null()) return absl::OkStatus();
  if (!IsCount(*found) || found->get<uint64_t>() < low || found->get<uint64_t>() > high) {
    return InvalidField(field, absl::StrCat("is ", found->dump(), "; give ", low, " to ", high));
  }
  value = found->get<uint64_t>();
  return absl::OkStatus();
}

absl::Status ReadBias(const Json& line, uint32_t vocab, engine::SamplingParams& params) {
  const auto found = line.find("logit_bias");
  if (found == line.end() || found->is_null()) return absl::OkStatus();
  if (!found->is_object()) return InvalidField("logit_bias", "must be an object of id and value");
  for (const auto& [key, value] : found->items()) {
    const std::string name = absl::StrCat("logit_bias.", key);
    uint32_t id = 0;
    if (!absl::SimpleAtoi(key, &id) || id >= vocab) {
      return InvalidField(name, absl::StrCat("is no token id below ", vocab));
    }
    float bias = 0;
    if (absl::Status read = ReadNumber(*found, key.c_str(), -100, 100, bias); !read.ok()) {
      return services::WithFieldPrefix(read, "logit_bias.");
    }
    params.logit_bias.emplace_back(TokenId(id), bias);
  }
  return absl::OkStatus();
}

absl::StatusOr<engine::SamplingParams> ReadSampling(const Json& line, uint32_t vocab) {
  engine::SamplingParams params;
  params.temperature = 0;
  uint64_t top_k = 0, min_tokens = 0;
  for (absl::Status read :
       {ReadNumber(line, "temperature", 0, 100, params.temperature),
        ReadNumber(line, "top_p", 1e-6, 1, params.top_p),
        ReadNumber(line, "min_p", 0, 1, params.min_p),
        ReadNumber(line, "repetition_penalty", 0.01, 100, params.repetition_penalty),
        ReadNumber(line, "presence_penalty", -2, 2, params.presence_penalty),
        ReadNumber(line, "frequency_penalty", -2, 2, params.frequency_penalty),
        ReadCount(line, "top_k", 0, vocab, top_k),
        ReadCount(line, "seed", 0, UINT64_MAX, params.seed),
        ReadCount(line, "min_tokens", 0, kRunnerTokensMax, min_tokens),
        ReadBias(line, vocab, params)}) {
    if (!read.ok()) return read;
  }
  params.top_k = static_cast<uint32_t>(top_k);
  params.min_tokens = static_cast<uint32_t>(min_tokens);
  return params;
}

}  // namespace

absl::StatusOr<Json> LogitsLine(ModelRunner& runner, const Json& line) {
  const absl::StatusOr<std::vector<TokenId>> prompt = ReadPrompt(runner, line);
  if (!prompt.ok()) return prompt.status();
  const absl::StatusOr<std::vector<uint32_t>> positions =
      ReadIds(line, "positions", prompt->size(), "the prompt has", kPositionsMax);
  if (!positions.ok()) return positions.status();
  for (size_t i = 1; i < positions->size(); ++i) {
    if ((*positions)[i] <= (*positions)[i - 1]) {
      return InvalidField(absl::StrCat("positions[", i, "]"), "must be above the one before");
    }
  }
  runner.Restart(0);
  const absl::StatusOr<std::vector<float>> logits = runner.Append(0, *prompt, *positions);
  if (!logits.ok()) return logits.status();
  const size_t vocab = runner.shape().vocab;
  Json rows = Json::array();
  for (size_t row = 0; row < positions->size(); ++row) {
    rows.push_back(
        std::vector<float>(logits->begin() + row * vocab, logits->begin() + (row + 1) * vocab));
  }
  return Json{{"logits", std::move(rows)}};
}

absl::StatusOr<Json> GenerateLine(ModelRunner& runner, const std::set<uint32_t>& eos_ids,
                                  const Json& line) {
  const absl::StatusOr<std::vector<TokenId>> prompt = ReadPrompt(runner, line);
  if (!prompt.ok()) return prompt.status();
  const uint32_t vocab = runner.shape().vocab;
  absl::StatusOr<engine::SamplingParams> params = ReadSampling(line, vocab);
  if (!params.ok()) return params.status();
  uint64_t max_tokens = runner.tokens_max() - prompt->size();
  if (absl::Status read = ReadCount(line, "max_tokens", 1, kRunnerTokensMax, max_tokens);
      !read.ok()) {
    return read;
  }
  std::set<uint32_t> ends = line.value("ignore_eos", false) ? std::set<uint32_t>{} : eos_ids;
  if (line.contains("stop_token_ids")) {
    const auto stops = ReadIds(line, "stop_token_ids", vocab, "the vocabulary has", 64);
    if (!stops.ok()) return stops.status();
    ends.insert(stops->begin(), stops->end());
  }
  for (uint32_t id : ends) params->end_ids.push_back(TokenId(id));

  runner.Restart(0);
  engine::TokenHistory history;
  for (TokenId token : *prompt) history.AddPrompt(token);
  engine::SamplerScratch scratch;
  const uint32_t last[] = {static_cast<uint32_t>(prompt->size()) - 1};
  absl::StatusOr<std::vector<float>> logits = runner.Append(0, *prompt, last);
  if (!logits.ok()) return logits.status();
  std::vector<float> row = *std::move(logits);
  Json ids = Json::array();
  for (;;) {
    const engine::SampledToken sampled =
        engine::SampleToken(row, *params, history, static_cast<uint32_t>(ids.size()), scratch);
    if (sampled.not_finite) return absl::DataLossError("the model's logits are not finite");
    ids.push_back(sampled.token.value);
    history.AddOutput(sampled.token);
    if (ends.contains(sampled.token.value)) return Json{{"ids", ids}, {"finish_reason", "stop"}};
    if (ids.size() >= max_tokens || prompt->size() + ids.size() >= runner.tokens_max()) {
      return Json{{"ids", ids}, {"finish_reason", "length"}};
    }
    const absl::StatusOr<std::span<const float>> next = runner.Step({&sampled.token, 1});
    if (!next.ok()) return next.status();
    row.assign(next->begin(), next->end());
  }
}

void AddModelCommands(CLI::App& app, int& exit_status) {
  for (const bool generate : {false, true}) {
    auto options = std::make_shared<RunnerOptions>();
    CLI::App* const command =
        generate ? app.add_subcommand("generate", "tokens after a prompt of ids, on JSON lines")
                 : app.add_subcommand("logits", "logits of a prompt of ids, on JSON lines");
    command->add_option("--model", options->model, "the checkpoint's folder")->required();
    command->add_option("--chunk", options->chunk, "prompt tokens of one step (512)");
    command->add_option("--threads", options->threads, "0: one a core");
    command->callback([options, generate, &exit_status] {
      const auto runner = ModelRunner::Open(*options);
      const auto config = engine::LoadModelConfig(options->model);
      if (!runner.ok() || !config.ok()) {
        const absl::Status& status = runner.ok() ? config.status() : runner.status();
        std::fprintf(stderr, "tessera: %s\n", std::string(status.message()).c_str());
        exit_status = 1;
        return;
      }
      const std::set<uint32_t> eos(config->eos_ids.begin(), config->eos_ids.end());
      exit_status = RunLineFilter(std::cin, std::cout, [&](const Json& line) {
        return generate ? GenerateLine(**runner, eos, line) : LogitsLine(**runner, line);
      });
    });
  }
}

}  // namespace tessera::cli

#include "services/cli/commands/model/bench_command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/planner/memory_plan.h"
#include "nlohmann/json.hpp"
#include "services/cli/commands/model/model_runner.h"
#include "services/cli/commands/up/layout.h"

namespace tessera::cli {
namespace {

struct BenchOptions {
  RunnerOptions runner;
  bool prefill = false;
  bool json = false;
  uint32_t tokens = 128;  // decoded a sequence and round, or prompt tokens of a round
  uint32_t context = 64;  // tokens before the decoded ones
  uint32_t rounds = 5;
};

constexpr uint32_t kBenchTokensMax = 32768;
constexpr uint32_t kRoundsMax = 100;

// Token ids that exercise different rows and experts; the same in every run.
std::vector<engine::TokenId> SomeTokens(uint32_t count, uint32_t vocab) {
  std::vector<engine::TokenId> tokens;
  uint32_t state = 12345;
  for (uint32_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    tokens.push_back(engine::TokenId((state >> 8) % vocab));
  }
  return tokens;
}

// Seconds of one round's measured part.
absl::StatusOr<double> Round(ModelRunner& runner, const BenchOptions& options) {
  using Clock = std::chrono::steady_clock;
  const uint32_t vocab = runner.shape().vocab;
  if (options.prefill) {
    const std::vector<engine::TokenId> prompt = SomeTokens(options.tokens, vocab);
    const uint32_t last[] = {options.tokens - 1};
    runner.Restart(0);
    const Clock::time_point begin = Clock::now();
    const auto logits = runner.Append(0, prompt, last);
    if (!logits.ok()) return logits.status();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  for (uint32_t i = 0; i < options.runner.sequences; ++i) {
    runner.Restart(i);
    if (options.context == 0) continue;
    const auto logits = runner.Append(i, SomeTokens(options.context, vocab), {});
    if (!logits.ok()) return logits.status();
  }
  std::vector<engine::TokenId> tokens = SomeTokens(options.runner.sequences, vocab);
  const Clock::time_point begin = Clock::now();
  for (uint32_t step = 0; step < options.tokens; ++step) {
    const auto logits = runner.Step(tokens);
    if (!logits.ok()) return logits.status();
    // Greedy, as a user would run it: each sequence goes its own way.
    for (uint32_t i = 0; i < tokens.size(); ++i) {
      const auto row = logits->subspan(size_t{i} * vocab, vocab);
      tokens[i] = engine::TokenId(std::max_element(row.begin(), row.end()) - row.begin());
    }
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Bytes that one token makes the device move: its share of the weights that a step reads, its state
// read and written, and its keys and values read, half of the decoded tokens being there on
// average.
absl::StatusOr<double> BytesPerToken(const BenchOptions& options, const engine::ModelShape& shape) {
  const auto model = engine::LoadModelConfig(options.runner.model);
  if (!model.ok()) return model.status();
  const auto quantization = engine::QuantizationConfig::Load(options.runner.model);
  if (!quantization.ok()) return quantization.status();
  engine::PlanOptions plan_options;
  plan_options.max_sequences = options.runner.sequences;
  const auto plan = engine::PlanMemory(*model, **quantization, plan_options);
  if (!plan.ok()) return plan.status();
  const double tokens_before = options.context + options.tokens / 2.0;
  return static_cast<double>(plan->weight_bytes_decode) / options.runner.sequences +
         2.0 * static_cast<double>(shape.state_bytes_per_slot) +
         tokens_before * static_cast<double>(shape.kv_bytes_per_token);
}

int Run(BenchOptions options) {
  const auto fail = [](const absl::Status& status) {
    std::fprintf(stderr, "tessera: %s\n", std::string(status.message()).c_str());
    return 1;
  };
  if (options.runner.model.empty()) {
    const absl::StatusOr<std::filesystem::path> own = OwnFolder();
    if (!own.ok()) return fail(own.status());
    const absl::StatusOr<std::filesystem::path> demo = FindDemoModel(SearchFolders(*own));
    if (!demo.ok()) return fail(demo.status());
    options.runner.model = demo->string();
  }
  options.runner.tokens_max = options.prefill ? options.tokens : options.context + options.tokens;
  const absl::StatusOr<std::unique_ptr<ModelRunner>> runner = ModelRunner::Open(options.runner);
  if (!runner.ok()) return fail(runner.status());
  const double tokens =
      double{1} * options.tokens * (options.prefill ? 1 : options.runner.sequences);
  std::vector<double> rates;
  for (uint32_t round = 0; round <= options.rounds; ++round) {
    const absl::StatusOr<double> seconds = Round(**runner, options);
    if (!seconds.ok()) return fail(seconds.status());
    if (round == 0) continue;  // warms caches up
    rates.push_back(tokens / *seconds);
    if (!options.json) {
      const double best = *std::max_element(rates.begin(), rates.end());
      std::printf("round %2u  %10.0f tokens/s  %s\n", round, rates.back(),
                  std::string(static_cast<size_t>(40 * rates.back() / best), '#').c_str());
      std::fflush(stdout);
    }
  }
  std::sort(rates.begin(), rates.end());
  const double steps = options.prefill ? 1 : options.tokens;
  nlohmann::ordered_json result = {
      {"bench", options.prefill ? "prefill" : "decode"},
      {"batch", options.runner.sequences},
      {"tokens", options.tokens},
      {"context", options.prefill ? 0 : options.context},
      {"rounds", options.rounds},
      {"tokens_per_second_best", rates.back()},
      {"tokens_per_second_median", rates[rates.size() / 2]},
      {"step_milliseconds_best", 1000 * tokens / rates.back() / steps},
      {"weight_bytes", (*runner)->shape().weight_bytes},
  };
  if (!options.prefill) {
    const absl::StatusOr<double> bytes = BytesPerToken(options, (*runner)->shape());
    if (!bytes.ok()) return fail(bytes.status());
    result["bytes_per_token"] = *bytes;
    if (!options.json) {
      std::printf("%.2f MB a token, %.1f GB/s at the best rate\n", *bytes / 1e6,
                  *bytes * rates.back() / 1e9);
    }
  }
  if (options.json) {
    std::printf("%s\n", result.dump().c_str());
  } else {
    std::printf("best %.0f, median %.0f tokens/s; %.3f ms a step\n", rates.back(),
                rates[rates.size() / 2], 1000 * tokens / rates.back() / steps);
  }
  return 0;
}

}  // namespace

void AddModelBenchCommands(CLI::App& bench, int& exit_status) {
  for (const bool prefill : {false, true}) {
    auto options = std::make_shared<BenchOptions>();
    options->prefill = prefill;
    options->tokens = prefill ? 512 : 128;
    CLI::App* const command =
        prefill ? bench.add_subcommand("prefill", "tokens/s of reading a prompt")
                : bench.add_subcommand("decode", "tokens/s of generating, the model alone");
    command->add_option("--model", options->runner.model,
                        "the checkpoint's folder; default: the demo model");
    command->add_option("--tokens", options->tokens, "tokens of a round")
        ->check(CLI::Range(1u, kBenchTokensMax));
    command->add_option("--threads", options->runner.threads, "0: one a core");
    command->add_option("--rounds", options->rounds, "measured rounds (5)")
        ->check(CLI::Range(1u, kRoundsMax));
    command->add_flag("--json", options->json, "one JSON line");
    if (!prefill) {
      command->add_option("--batch", options->runner.sequences, "sequences side by side (1)");
      command->add_option("--context", options->context, "tokens before (64)")
          ->check(CLI::Range(0u, kBenchTokensMax));
    } else {
      command->add_option("--chunk", options->runner.chunk, "tokens of one step (512)");
    }
    command->callback([options, &exit_status] { exit_status = Run(*options); });
  }
}

}  // namespace tessera::cli

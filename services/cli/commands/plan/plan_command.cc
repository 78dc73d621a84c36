#include "services/cli/commands/plan/plan_command.h"

#include <cinttypes>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "engine/planner/memory_plan.h"
#include "nlohmann/json.hpp"

namespace tessera::cli {
namespace {

using engine::MemoryPlan;
using engine::PlanKnob;
using engine::PlanOptions;
using engine::PlanPart;
using engine::StateType;

struct Flags {
  std::string model_dir;
  std::string memory = "24GiB";
  std::string kv_dtype = "bf16";
  std::string ssm_dtype = "float32";
  PlanOptions options;
  bool json = false;
};

double GiB(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

void PrintTable(const Flags& flags, const MemoryPlan& plan) {
  std::printf("%-36s %16s %9s\n", "one worker", "bytes", "GiB");
  for (const PlanPart& part : plan.parts) {
    std::printf("%-36s %16" PRIu64 " %9.3f%s\n", part.name.c_str(), part.bytes, GiB(part.bytes),
                part.estimate ? "  (estimate)" : "");
  }
  std::printf("%-36s %16" PRIu64 " %9.3f\n", "total", plan.total_bytes, GiB(plan.total_bytes));
  std::printf("weights of the model: %.2f GB, of a worker: %.2f GB\n",
              static_cast<double>(plan.weight_bytes_model) / 1e9,
              static_cast<double>(plan.weight_bytes) / 1e9);
  std::printf("KV pool: %" PRIu64 " tokens at %" PRIu64 " bytes; largest that fits: %" PRIu64
              " tokens\n",
              plan.kv_tokens_wanted, plan.kv_bytes_per_token, plan.kv_tokens_fit);
  std::printf("a decode step of --max-sequences reads %.3f GB of a worker's weights\n",
              static_cast<double>(plan.weight_bytes_decode) / 1e9);
  if (plan.fits) {
    std::printf("fits in %s with %.3f GiB to spare\n", flags.memory.c_str(),
                GiB(plan.margin_bytes));
  } else {
    std::printf("does not fit in %s: %.3f GiB short\n", flags.memory.c_str(),
                GiB(plan.missing_bytes));
  }
  for (const PlanKnob& knob : plan.knobs) {
    std::printf("  %-28s frees %9.3f GiB\n", knob.change.c_str(), GiB(knob.bytes_freed));
  }
}

void PrintJson(const MemoryPlan& plan) {
  nlohmann::ordered_json out;
  for (const PlanPart& part : plan.parts) {
    out["parts"].push_back(
        {{"name", part.name}, {"bytes", part.bytes}, {"estimate", part.estimate}});
  }
  out["total_bytes"] = plan.total_bytes;
  out["weight_bytes"] = plan.weight_bytes;
  out["weight_bytes_model"] = plan.weight_bytes_model;
  out["weight_bytes_decode"] = plan.weight_bytes_decode;
  out["kv_bytes_per_token"] = plan.kv_bytes_per_token;
  out["kv_tokens_wanted"] = plan.kv_tokens_wanted;
  out["kv_tokens_fit"] = plan.kv_tokens_fit;
  out["state_bytes_per_sequence"] = plan.state_bytes_per_sequence;
  out["fits"] = plan.fits;
  out["margin_bytes"] = plan.margin_bytes;
  out["missing_bytes"] = plan.missing_bytes;
  out["knobs"] = nlohmann::ordered_json::array();
  for (const PlanKnob& knob : plan.knobs) {
    out["knobs"].push_back({{"change", knob.change}, {"bytes_freed", knob.bytes_freed}});
  }
  std::cout << out.dump(1) << "\n";
}

int Fail(const absl::Status& status, const char* field = "") {
  std::cerr << "tessera plan: " << field << std::string(status.message()) << "\n";
  return 1;
}

int Run(Flags flags) {
  auto memory = engine::ParseBytes(flags.memory);
  if (!memory.ok()) return Fail(memory.status(), "--memory: ");
  flags.options.memory_bytes = *memory;
  flags.options.kv_type = flags.kv_dtype == "int8"      ? StateType::kInt8
                          : flags.kv_dtype == "float16" ? StateType::kF16
                          : flags.kv_dtype == "float32" ? StateType::kF32
                                                        : StateType::kBf16;
  flags.options.ssm_type = flags.ssm_dtype == "float16" ? StateType::kF16 : StateType::kF32;
  auto model = engine::LoadModelConfig(flags.model_dir);
  if (!model.ok()) return Fail(model.status());
  auto quantization = engine::QuantizationConfig::Load(flags.model_dir);
  if (!quantization.ok()) return Fail(quantization.status());
  auto plan = engine::PlanMemory(*model, **quantization, flags.options);
  if (!plan.ok()) return Fail(plan.status());
  if (flags.json) {
    PrintJson(*plan);
  } else {
    PrintTable(flags, *plan);
  }
  return plan->fits ? 0 : 1;
}

}  // namespace

void AddPlanCommand(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* plan = app.add_subcommand("plan", "what a worker's memory holds, before loading");
  PlanOptions& options = flags->options;
  plan->add_option("model_dir", flags->model_dir, "directory with config.json")->required();
  plan->add_option("--memory", flags->memory, "memory of one device")->capture_default_str();
  plan->add_option("--workers", options.workers, "devices")->capture_default_str();
  plan->add_option("--max-model-len", options.max_model_len, "tokens of one sequence; 0: all");
  plan->add_option("--max-sequences", options.max_sequences, "at once")->capture_default_str();
  plan->add_option("--step-tokens", options.step_tokens, "of one step")->capture_default_str();
  plan->add_option("--block-tokens", options.block_tokens, "of a KV block")->capture_default_str();
  plan->add_option("--kv-dtype", flags->kv_dtype, "KV cache")
      ->check(CLI::IsMember({"int8", "bf16", "float16", "float32"}))
      ->capture_default_str();
  plan->add_option("--ssm-dtype", flags->ssm_dtype, "SSM state")
      ->check(CLI::IsMember({"float32", "float16"}))
      ->capture_default_str();
  plan->add_flag("--json", flags->json, "as JSON");
  plan->callback([flags, &exit_status] { exit_status = Run(*flags); });
}

}  // namespace tessera::cli

// tessera-engine: token ids in, token ids out; owns queue, scheduler and the worker's process.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/executor/executor.h"
#include "engine/server/admin_service.h"
#include "engine/server/engine_metrics.h"
#include "engine/server/engine_service.h"
#include "engine/server/engine_state.h"
#include "engine/server/worker_supervisor.h"
#include "engine/weights/model_config.h"
#include "services/common/clock.h"
#include "services/common/field_error.h"
#include "services/common/server_host.h"
#include "services/common/server_options.h"
#include "services/common/version.h"

namespace tessera::engine {
namespace {

using services::InvalidField;

constexpr uint32_t kSequencesMax = 1024;
constexpr uint64_t kKvBytesDefault = uint64_t{256} << 20;
// The CPU device keeps keys and values as float32.
constexpr uint64_t kKvElementBytes = 4;

struct Options {
  services::ServerOptions server = {.listen = "127.0.0.1:50051",
                                    .admin_listen = "127.0.0.1:50061",
                                    .metrics_listen = "127.0.0.1:9101"};
  std::string model;
  std::string model_name;
  std::string device = "cpu";
  std::string bin_dir;
  std::string worker_binary = "tessera-worker";
  uint32_t workers = 1;
  uint32_t threads = 0;
  uint32_t sequences_max = 16;
  uint32_t model_len_max = 0;
  uint32_t kv_blocks = 0;
  std::string kv_memory;
  uint32_t block_tokens = 16;
  uint32_t step_tokens = 512;
  uint32_t step_prefill_tokens = 128;
  uint32_t queue_requests_max = 256;
  uint64_t queue_tokens_max = 1 << 20;
  double step_timeout_s = 60;
  bool async_scheduling = true;
};

void AddFlags(CLI::App& app, Options& o) {
  const auto defaults = [](CLI::Option* option) { option->capture_default_str(); };
  app.set_version_flag("--version", std::string("tessera-engine ") + services::kVersion);
  app.add_option("--model", o.model, "model directory in hub layout")->required();
  app.add_option("--model-name", o.model_name, "name that requests give; default: the directory's");
  defaults(app.add_option("--device", o.device, "where the model runs: cpu"));
  app.add_option("--bin-dir", o.bin_dir, "folder of tessera-worker; default: this program's own");
  defaults(app.add_option("--worker-binary", o.worker_binary, "file name of the worker"));
  defaults(app.add_option("--workers", o.workers, "worker processes; only 1 for now"));
  defaults(app.add_option("--threads", o.threads, "compute threads of a worker; 0: one a core"));
  defaults(app.add_option("--max-sequences", o.sequences_max, "sequences that run at once")
               ->check(CLI::Range(1u, kSequencesMax)));
  app.add_option("--max-model-len", o.model_len_max,
                 "prompt and generated tokens of one sequence; default: the model's");
  app.add_option("--kv-blocks", o.kv_blocks, "KV blocks in the pool; default: from --kv-memory");
  app.add_option("--kv-memory", o.kv_memory,
                 "memory of the KV pool (256MiB, 2GiB); default 256MiB, and at least one context");
  defaults(app.add_option("--block-tokens", o.block_tokens, "tokens of a KV block")
               ->check(CLI::Range(1u, 1024u)));
  defaults(app.add_option("--step-tokens", o.step_tokens, "tokens of one step over all sequences")
               ->check(CLI::Range(1u, 1u << 16)));
  defaults(app.add_option("--step-prefill-tokens", o.step_prefill_tokens,
                          "prefill tokens of a step that also decodes")
               ->check(CLI::Range(1u, 1u << 16)));
  defaults(app.add_option("--queue-requests-max", o.queue_requests_max, "requests that may wait")
               ->check(CLI::Range(1u, 1u << 16)));
  defaults(app.add_option("--queue-tokens-max", o.queue_tokens_max,
                          "prompt tokens of all requests that wait"));
  defaults(app.add_option("--step-timeout-s", o.step_timeout_s,
                          "a worker that does not answer a step for this long is restarted")
               ->check(CLI::Range(0.1, 3600.0)));
  defaults(app.add_flag("--async-scheduling,!--no-async-scheduling", o.async_scheduling,
                        "plan a step while the one before it runs"));
  services::AddServerFlags(app, o.server);
}

// "256MiB", "2GiB", "1048576".
absl::StatusOr<uint64_t> ParseBytes(const std::string& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(digits);
  uint64_t value = 0;
  int shift = -1;
  if (unit.empty() || unit == "B") shift = 0;
  if (unit == "KiB") shift = 10;
  if (unit == "MiB") shift = 20;
  if (unit == "GiB") shift = 30;
  if (shift < 0 || !absl::SimpleAtoi(text.substr(0, digits), &value) || value == 0 ||
      value > (uint64_t{1} << 46 >> shift)) {
    return InvalidField("--kv-memory",
                        absl::StrCat("is '", text, "'; give a number with KiB, MiB or GiB"));
  }
  return value << shift;
}

// How the model and the flags together size the engine.
struct Sizes {
  ModelFacts facts;
  uint32_t blocks = 0;
};

absl::Status CheckFlags(const Options& o) {
  if (o.workers != 1) {
    return InvalidField("--workers",
                        absl::StrCat("is ", o.workers, "; more than one worker is not built yet"));
  }
  if (o.device != "cpu") {
    return InvalidField("--device", absl::StrCat("is '", o.device, "'; this build has cpu"));
  }
  if (o.step_tokens < o.sequences_max) {
    return InvalidField(
        "--step-tokens",
        absl::StrCat("is ", o.step_tokens, "; give at least --max-sequences, ", o.sequences_max));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> BlocksOf(const Options& o, const ModelConfig& config, uint64_t context) {
  uint64_t blocks = o.kv_blocks;
  if (blocks == 0) {
    uint64_t bytes = kKvBytesDefault;
    if (!o.kv_memory.empty()) {
      absl::StatusOr<uint64_t> parsed = ParseBytes(o.kv_memory);
      if (!parsed.ok()) return parsed.status();
      bytes = *parsed;
    }
    uint64_t token_bytes = 0;
    for (const LayerConfig& layer : config.layers) {
      if (layer.kind != LayerKind::kAttention) continue;
      token_bytes += 2 * kKvElementBytes * layer.attention.kv_heads * layer.attention.head_dim;
    }
    // More than every sequence at its longest is never used.
    const uint64_t most =
        BlocksFor(static_cast<uint32_t>(context), o.block_tokens) * uint64_t{o.sequences_max};
    blocks = std::min(most, bytes / std::max<uint64_t>(token_bytes * o.block_tokens, 1));
    if (o.kv_memory.empty()) {
      blocks =
          std::max<uint64_t>(blocks, BlocksFor(static_cast<uint32_t>(context), o.block_tokens));
    }
  }
  if (blocks == 0 || blocks > (1u << 26)) {
    return InvalidField(o.kv_blocks != 0 ? "--kv-blocks" : "--kv-memory",
                        absl::StrCat("makes ", blocks, " blocks; give room for 1 to ", 1u << 26));
  }
  return static_cast<uint32_t>(blocks);
}

absl::StatusOr<Sizes> SizesOf(const Options& o, const ModelConfig& config) {
  uint64_t context = config.context_tokens_max;
  if (o.model_len_max > context) {
    return InvalidField("--max-model-len", absl::StrCat("is ", o.model_len_max,
                                                        "; the model's context has ", context));
  }
  if (o.model_len_max != 0) context = o.model_len_max;
  absl::StatusOr<uint32_t> blocks = BlocksOf(o, config, context);
  if (!blocks.ok()) return blocks.status();
  // Any request must fit the pool alone, or it could never end.
  context = std::min<uint64_t>(context, uint64_t{*blocks} * o.block_tokens);
  if (context < 2)
    return InvalidField("--max-model-len", "leaves no room for a prompt and a token");

  Sizes sizes = {.blocks = *blocks};
  ModelFacts& facts = sizes.facts;
  facts.name = o.model_name;
  if (facts.name.empty()) {
    facts.name = std::filesystem::weakly_canonical(o.model).filename().string();
  }
  facts.architecture = config.architecture;
  facts.vocab = config.vocab;
  facts.context_tokens_max = static_cast<uint32_t>(context);
  for (uint32_t id : config.eos_ids) {
    if (id < config.vocab) facts.eos_ids.push_back(TokenId(id));
  }
  const GenerationDefaults& defaults = config.generation;
  facts.temperature = defaults.temperature.value_or(1.0f);
  if (defaults.do_sample.has_value() && !*defaults.do_sample) facts.temperature = 0;
  facts.top_p = defaults.top_p.value_or(1.0f);
  facts.top_k = defaults.top_k.value_or(0);
  facts.repetition_penalty = defaults.repetition_penalty.value_or(1.0f);
  facts.sequences_max = o.sequences_max;
  facts.queue_requests_max = o.queue_requests_max;
  facts.device = o.device;
  facts.workers = o.workers;
  facts.version = services::kVersion;
  return sizes;
}

std::string WorkerProgram(const Options& o) {
  std::filesystem::path folder = o.bin_dir;
  std::error_code error;
  if (folder.empty()) folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return (folder / o.worker_binary).string();
}

class MonotonicClock final : public Clock {
 public:
  uint64_t NowUs() const override {
    return static_cast<uint64_t>(absl::ToInt64Microseconds(services::RealClock().Monotonic())) + 1;
  }
};

// The executor is made before the supervisor can be, and asks it for one thing.
class KeeperRef final : public WorkerKeeper {
 public:
  void OnWorkerUnfit(uint64_t generation, const absl::Status& reason) override {
    supervisor->OnWorkerUnfit(generation, reason);
  }
  WorkerSupervisor* supervisor = nullptr;
};

int Fail(const absl::Status& status, int exit_code) {
  std::fprintf(stderr, "tessera-engine: %s\n", std::string(status.message()).c_str());
  return exit_code;
}

ExecutorOptions ExecutorOptionsOf(const Options& o, const Sizes& sizes) {
  return {.loop = {.slots = o.sequences_max,
                   .blocks = sizes.blocks,
                   .vocab = sizes.facts.vocab,
                   .plans_in_flight_max = o.async_scheduling ? kPlansInFlightMax : 1,
                   .limits = {.block_tokens = o.block_tokens,
                              .step_tokens_max = o.step_tokens,
                              .prefill_tokens_beside_decode_max = o.step_prefill_tokens}},
          .queue_requests_max = o.queue_requests_max,
          .queue_tokens_max = o.queue_tokens_max,
          .step_us_max = static_cast<uint64_t>(o.step_timeout_s * 1e6)};
}

int Serve(const Options& o, const Sizes& sizes, services::ServerHost& host) {
  const MonotonicClock clock;
  EngineMetrics metrics(host.registry(), sizes.facts, host.log());
  KeeperRef keeper;
  Executor executor(ExecutorOptionsOf(o, sizes), clock, metrics, keeper);
  EngineState state(executor,
                    [&host](bool serving) { host.health().Set(kEngineServiceName, serving); });
  WorkerSupervisor supervisor(
      {.program = WorkerProgram(o),
       .arguments = {"--device", o.device, "--threads", std::to_string(o.threads)},
       .load = {.model_path = o.model,
                .slots = o.sequences_max,
                .blocks = sizes.blocks,
                .block_tokens = o.block_tokens,
                .step_tokens_max = o.step_tokens}},
      {.clock = clock,
       .state = state,
       .metrics = metrics,
       .log = host.log(),
       .on_fatal = [&host](const absl::Status& status) {
         host.log().Error("the model cannot be served", {{"reason", status.ToString()}});
         host.RequestStop(services::kExitFailure);
       }});
  keeper.supervisor = &supervisor;
  EngineServiceAdapter service({.executor = executor,
                                .clock = clock,
                                .model = sizes.facts,
                                .state = state,
                                .request_ids = host.request_ids(),
                                .metrics = metrics,
                                .log = host.log()});
  AdminServiceAdapter admin(executor, state, absl::Seconds(o.server.drain_timeout_s), host.log());
  host.AddService(&service, kEngineServiceName);
  host.AddAdminService(&admin, kEngineAdminServiceName);
  host.OnDrain([&state] { state.Drain(); });
  if (absl::Status s = host.Start(); !s.ok()) return Fail(s, services::kExitFailure);
  host.health().Set(kEngineAdminServiceName, true);
  std::thread loop([&executor] { executor.Run(); });
  int exit_code = services::kExitFailure;
  if (absl::Status s = supervisor.Start(executor); s.ok()) {
    host.log().Info("engine starts", {{"model", sizes.facts.name},
                                      {"context_tokens_max", sizes.facts.context_tokens_max},
                                      {"sequences_max", sizes.facts.sequences_max},
                                      {"kv_blocks", sizes.blocks}});
    exit_code = host.Run();
  } else {
    host.Stop(absl::ZeroDuration());
    Fail(s, services::kExitFailure);
  }
  supervisor.Stop();
  executor.Stop();
  loop.join();
  return exit_code;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Token ids in, token ids out, over gRPC.", "tessera-engine");
  AddFlags(app, options);
  if (const int code = services::ParseFlags(app, argc, argv); code >= 0) return code;
  if (absl::Status s = CheckFlags(options); !s.ok()) return Fail(s, services::kExitBadFlags);
  absl::StatusOr<ModelConfig> config = LoadModelConfig(options.model);
  if (!config.ok()) {
    return Fail(absl::Status(config.status().code(), absl::StrCat("--model ", options.model, ": ",
                                                                  config.status().message())),
                services::kExitFailure);
  }
  absl::StatusOr<Sizes> sizes = SizesOf(options, *config);
  if (!sizes.ok()) return Fail(sizes.status(), services::kExitBadFlags);
  absl::StatusOr<std::unique_ptr<services::ServerHost>> host =
      services::ServerHost::Create("engine", options.server);
  if (!host.ok()) return Fail(host.status(), services::kExitBadFlags);
  return Serve(options, *sizes, **host);
}

}  // namespace
}  // namespace tessera::engine

int main(int argc, char** argv) { return tessera::engine::Main(argc, argv); }

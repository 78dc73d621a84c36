#include "services/cli/commands/bench/traffic_command.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"
#include "services/cli/commands/bench/arrivals.h"
#include "services/cli/commands/bench/engine_target.h"
#include "services/cli/commands/bench/http_target.h"
#include "services/cli/commands/bench/traffic_report.h"
#include "services/cli/commands/bench/traffic_runner.h"
#include "services/cli/commands/bench/traffic_summary.h"
#include "services/clients/channel.h"
#include "services/clients/engine_client.h"
#include "services/common/clock.h"
#include "services/common/log.h"

namespace tessera::cli {
namespace {

constexpr uint32_t kTokensMax = 1 << 20;
constexpr uint32_t kRequestsMax = 1'000'000;
// Requests before the measurement have indices of their own, so that their prompts are others.
constexpr size_t kWarmupIndex = size_t{1} << 30;

struct TrafficOptions {
  bool open_loop = false;
  HttpTraffic http;
  std::string api = "chat";
  std::string engine;  // empty: HTTP
  uint32_t concurrency = 8;
  uint32_t requests = 64;
  double rate = 4;         // requests/s
  double duration_s = 30;  // of the arrivals
  uint32_t warmup = 2;
  double timeout_s = 300;
  double first_token_ms = 1000;
  double inter_token_ms = 100;
  bool json = false;
};

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "tessera: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

// The target, and what it needs to live.
struct Target {
  std::unique_ptr<services::EngineClient> engine;
  std::unique_ptr<TrafficTarget> target;
  std::string name;
};

absl::StatusOr<Target> MakeTarget(const TrafficOptions& o) {
  Target out;
  absl::StatusOr<std::unique_ptr<TrafficTarget>> made;
  if (o.engine.empty()) {
    out.name = absl::StrCat(o.http.url, " ", o.api);
    made = MakeHttpTarget(o.http);
  } else {
    out.name = absl::StrCat("engine ", o.engine);
    const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = services::MakeChannel(o.engine);
    if (!channel.ok()) return channel.status();
    out.engine = services::MakeEngineClient(*channel);
    made = MakeEngineTarget(*out.engine, {.prompt_tokens = o.http.prompt_words,
                                          .max_tokens = o.http.max_tokens,
                                          .ignore_eos = o.http.ignore_eos,
                                          .temperature = o.http.temperature,
                                          .seed = o.http.seed,
                                          .timeout = o.http.timeout});
    if (absl::IsUnavailable(made.status())) {
      return absl::UnavailableError(
          absl::StrCat("no engine service at ", o.engine, "; start one with `tessera up`"));
    }
  }
  if (!made.ok()) return made.status();
  out.target = *std::move(made);
  return out;
}

TrafficSetup SetupOf(const TrafficOptions& o, const std::string& target_name) {
  TrafficSetup setup = {.bench = o.open_loop ? "load" : "serve",
                        .target = target_name,
                        .limits = {.first_token = absl::Milliseconds(o.first_token_ms),
                                   .inter_token = absl::Milliseconds(o.inter_token_ms)},
                        .goodput = o.open_loop};
  if (o.open_loop) {
    setup.settings["rate"] = o.rate;
    setup.settings["duration"] = o.duration_s;
  } else {
    setup.settings["concurrency"] = o.concurrency;
    setup.settings["requests"] = o.requests;
  }
  setup.settings["max_tokens"] = o.http.max_tokens;
  setup.settings["ignore_eos"] = o.http.ignore_eos;
  setup.settings["seed"] = o.http.seed;
  return setup;
}

std::vector<RequestRecord> Measure(const TrafficOptions& o, TrafficTarget& target) {
  const services::Clock& clock = services::RealClock();
  RunClosedLoop(target, clock, kWarmupIndex, o.warmup, o.warmup);
  if (!o.open_loop) return RunClosedLoop(target, clock, 0, o.requests, o.concurrency);
  return RunOpenLoop(target, clock, 0,
                     PoissonArrivals(o.rate, absl::Seconds(o.duration_s), o.http.seed));
}

int Run(TrafficOptions& o) {
  o.http.chat = o.api == "chat";
  o.http.timeout = absl::Seconds(o.timeout_s);
  // gRPC would write about connections to standard error itself.
  const services::Logger quiet({.service = "bench", .level = services::LogLevel::kOff, .sink = {}});
  services::RouteGrpcLogs(&quiet);
  // The callback that brings an answer may still be unwinding when its channel is gone; gRPC must
  // not shut down under it.
  grpc_init();
  int exit_status = 0;
  {
    absl::StatusOr<Target> target = MakeTarget(o);
    if (target.ok()) {
      const TrafficSetup setup = SetupOf(o, target->name);
      const TrafficSummary summary = Summarize(Measure(o, *target->target), setup.limits);
      const std::string shown =
          o.json ? TrafficJson(setup, summary)
                           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                       "\n"
                 : TrafficTable(setup, summary);
      std::fputs(shown.c_str(), stdout);
      exit_status = summary.failed > 0 ? 1 : 0;
    } else {
      exit_status = Fail(target.status());
    }
  }
  services::RouteGrpcLogs(nullptr);
  return exit_status;
}

void AddTargetFlags(CLI::App& command, TrafficOptions& o) {
  CLI::Option* const url = command.add_option("--url", o.http.url, "the gateway, http://HOST:PORT");
  url->capture_default_str();
  CLI::Option* const api =
      command.add_option("--api", o.api, "chat or completions")->capture_default_str();
  api->check(CLI::IsMember({"chat", "completions"}));
  CLI::Option* const model = command.add_option("--model", o.http.model, "name that requests give");
  CLI::Option* const prompt =
      command.add_option("--prompt", o.http.prompt, "one prompt for all; default: random ones");
  command
      .add_option("--engine", o.engine,
                  "send token ids to the engine service at HOST:PORT instead, without any text")
      ->excludes(url, api, model, prompt);
}

void AddRequestFlags(CLI::App& command, TrafficOptions& o) {
  command
      .add_option("--prompt-tokens", o.http.prompt_words,
                  "length of random prompts; words over HTTP, which are about as many tokens")
      ->check(CLI::Range(1u, kTokensMax))
      ->capture_default_str();
  command.add_option("--max-tokens", o.http.max_tokens, "tokens of each answer")
      ->check(CLI::Range(1u, kTokensMax))
      ->capture_default_str();
  command.add_flag("--ignore-eos,!--stop-at-eos", o.http.ignore_eos,
                   "whether answers go on to --max-tokens, so that runs compare (default on)");
  command.add_option("--temperature", o.http.temperature, "0 takes the most likely token")
      ->check(CLI::Range(0.0, 100.0));
  command.add_option("--seed", o.http.seed, "of prompts, sampling and arrivals (0)");
  command.add_option("--warmup", o.warmup, "requests before the measurement")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  command.add_option("--timeout-s", o.timeout_s, "a request that takes longer has failed")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  command
      .add_option("--ttft-limit-ms", o.first_token_ms,
                  "a good request has its first token within this")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--itl-limit-ms", o.inter_token_ms,
                  "and takes at most this from token to token, on average")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--json", o.json, "one JSON line");
}

}  // namespace

void AddTrafficBenchCommands(CLI::App& bench, int& exit_status) {
  for (const bool open_loop : {false, true}) {
    auto options = std::make_shared<TrafficOptions>();
    options->open_loop = open_loop;
    CLI::App* const command =
        open_loop ? bench.add_subcommand("load", "a running server under requests at random times")
                  : bench.add_subcommand("serve", "a running server with N requests always open");
    AddTargetFlags(*command, *options);
    if (open_loop) {
      command->add_option("--rate", options->rate, "requests a second, on average")
          ->check(CLI::Range(0.001, 100000.0))
          ->capture_default_str();
      command->add_option("--duration", options->duration_s, "seconds during which they come")
          ->check(CLI::Range(0.001, 86400.0))
          ->capture_default_str();
    } else {
      command->add_option("--concurrency", options->concurrency, "requests open at once")
          ->check(CLI::Range(1u, static_cast<uint32_t>(kOpenRequestsMax)))
          ->capture_default_str();
      command->add_option("--requests", options->requests, "requests in all")
          ->check(CLI::Range(1u, kRequestsMax))
          ->capture_default_str();
    }
    AddRequestFlags(*command, *options);
    command->callback([options, &exit_status] { exit_status = Run(*options); });
  }
}

}  // namespace tessera::cli

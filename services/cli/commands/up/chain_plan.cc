#include "services/cli/commands/up/chain_plan.h"

#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tessera::cli {
namespace {

// Inner services are for this machine; whoever wants them apart runs them apart.
constexpr char kInnerHost[] = "127.0.0.1";

using Arguments = std::vector<std::string>;

void AddIfSet(Arguments& arguments, const char* flag, const std::string& value) {
  if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
}

void AddIfSet(Arguments& arguments, const char* flag, const std::optional<uint32_t>& value) {
  if (value) arguments.insert(arguments.end(), {flag, std::to_string(*value)});
}

void AddCommon(Arguments& arguments, const UpOptions& options, const Arguments& extra) {
  arguments.insert(arguments.end(), {"--log-format", "json", "--log-level", options.log_level,
                                     "--drain-timeout-s", absl::StrCat(options.drain_timeout_s)});
  arguments.insert(arguments.end(), extra.begin(), extra.end());
}

Arguments EngineArguments(const UpOptions& o, const ChainPorts& ports, const std::string& bin_dir,
                          const std::string& model_dir) {
  Arguments arguments = {"--model",          model_dir,
                         "--bin-dir",        bin_dir,
                         "--listen",         ports.engine.listen_address(),
                         "--admin-listen",   ports.engine_admin.listen_address(),
                         "--metrics-listen", ports.engine_metrics.listen_address()};
  AddIfSet(arguments, "--model-name", o.model_name);
  AddIfSet(arguments, "--device", o.device);
  AddIfSet(arguments, "--workers", o.workers);
  AddIfSet(arguments, "--threads", o.threads);
  AddIfSet(arguments, "--max-sequences", o.sequences_max);
  AddIfSet(arguments, "--max-model-len", o.model_len_max);
  AddIfSet(arguments, "--kv-memory", o.kv_memory);
  AddCommon(arguments, o, o.engine_flags);
  return arguments;
}

Arguments TokenizerArguments(const UpOptions& o, const ChainPorts& ports,
                             const std::string& model_dir) {
  Arguments arguments = {"--model",          model_dir,
                         "--engine",         ports.engine.client_address(),
                         "--listen",         ports.tokenizer.listen_address(),
                         "--metrics-listen", ports.tokenizer_metrics.listen_address()};
  AddIfSet(arguments, "--default-chat-template-kwargs", o.default_chat_template_kwargs);
  AddCommon(arguments, o, o.tokenizer_flags);
  return arguments;
}

Arguments ParserArguments(const UpOptions& o, const ChainPorts& ports) {
  Arguments arguments = {"--tokenizer",      ports.tokenizer.client_address(),
                         "--listen",         ports.parser.listen_address(),
                         "--metrics-listen", ports.parser_metrics.listen_address()};
  AddCommon(arguments, o, o.parser_flags);
  return arguments;
}

Arguments GatewayArguments(const UpOptions& o, const ChainPorts& ports) {
  Arguments arguments = {"--parser",        ports.parser.client_address(),
                         "--listen",        ports.gateway->listen_address(),
                         "--health-listen", ports.gateway_health->listen_address()};
  AddCommon(arguments, o, o.gateway_flags);
  return arguments;
}

}  // namespace

absl::StatusOr<ChainPorts> TakePorts(const UpOptions& o) {
  const bool fixed = o.port == kGatewayPort;
  const auto number = [fixed](std::optional<uint16_t> given, uint16_t documented) -> uint16_t {
    return given.value_or(fixed ? documented : 0);
  };
  const uint16_t metrics = number(o.metrics_port, kMetricsPort);
  const auto follows = [metrics](uint16_t n) -> uint16_t { return metrics == 0 ? 0 : metrics + n; };
  const uint16_t engine = number(o.engine_port, kEnginePort);
  // The documented admin port goes with the documented engine port.
  const uint16_t admin = engine == kEnginePort ? kEngineAdminPort : 0;

  absl::Status failed;
  const auto take = [&failed](std::string_view flag, const std::string& host, uint16_t port) {
    std::optional<HeldPort> held;
    if (!failed.ok()) return held;
    absl::StatusOr<HeldPort> taken = HeldPort::Take(flag, host, port);
    if (taken.ok()) {
      held = *std::move(taken);
    } else {
      failed = taken.status();
    }
    return held;
  };
  // The user's own port first: it is the one most likely to be in use.
  auto gateway = o.gateway ? take("--port", o.host, o.port) : std::nullopt;
  auto gateway_health =
      o.gateway ? take("--port", kInnerHost, fixed ? kGatewayHealthPort : 0) : std::nullopt;
  auto engine_held = take("--engine-port", kInnerHost, engine);
  auto admin_held = take("--engine-port", kInnerHost, admin);
  auto tokenizer = take("--tokenizer-port", kInnerHost, number(o.tokenizer_port, kTokenizerPort));
  auto parser = take("--parser-port", kInnerHost, number(o.parser_port, kParserPort));
  auto engine_metrics = take("--metrics-port", kInnerHost, metrics);
  auto tokenizer_metrics = take("--metrics-port", kInnerHost, follows(1));
  auto parser_metrics = take("--metrics-port", kInnerHost, follows(2));
  if (!failed.ok()) return failed;
  return ChainPorts{.engine = *std::move(engine_held),
                    .engine_admin = *std::move(admin_held),
                    .engine_metrics = *std::move(engine_metrics),
                    .tokenizer = *std::move(tokenizer),
                    .tokenizer_metrics = *std::move(tokenizer_metrics),
                    .parser = *std::move(parser),
                    .parser_metrics = *std::move(parser_metrics),
                    .gateway = std::move(gateway),
                    .gateway_health = std::move(gateway_health)};
}

absl::StatusOr<std::vector<ChildSpec>> PlanChain(const UpOptions& options, const ChainPorts& ports,
                                                 const std::string& bin_dir,
                                                 const std::string& model_dir) {
  std::vector<ChildSpec> specs = {
      {.name = "engine", .arguments = EngineArguments(options, ports, bin_dir, model_dir)},
      {.name = "tokenizer", .arguments = TokenizerArguments(options, ports, model_dir)},
      {.name = "parser", .arguments = ParserArguments(options, ports)}};
  if (ports.gateway) {
    specs.push_back({.name = "gateway", .arguments = GatewayArguments(options, ports)});
  }
  for (ChildSpec& spec : specs) {
    const std::string file = "tessera-" + spec.name;
    spec.program = (std::filesystem::path(bin_dir) / file).string();
    if (::access(spec.program.c_str(), X_OK) != 0) {
      return absl::NotFoundError(absl::StrCat(
          file, " is not in ", bin_dir, "; build //deploy/bin, or say where it is with --bin-dir"));
    }
    if (!options.log_dir.empty()) {
      spec.log_path = (std::filesystem::path(options.log_dir) / (spec.name + ".log")).string();
    }
  }
  return specs;
}

}  // namespace tessera::cli

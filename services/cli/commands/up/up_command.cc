#include "services/cli/commands/up/up_command.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/cli/commands/up/chain_plan.h"
#include "services/cli/commands/up/chain_session.h"
#include "services/cli/commands/up/layout.h"
#include "services/cli/commands/up/up_options.h"
#include "services/common/clock.h"
#include "services/common/field_error.h"
#include "services/common/log.h"
#include "services/common/server_options.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

int Fail(const absl::Status& status, int exit_status) {
  std::fprintf(stderr, "tessera up: %s\n", std::string(status.message()).c_str());
  return exit_status;
}

absl::StatusOr<fs::path> ModelOf(const UpOptions& options, const fs::path& bin_dir) {
  if (options.model_dir.empty()) return FindDemoModel(SearchFolders(bin_dir));
  std::error_code error;
  if (!fs::is_directory(options.model_dir, error)) {
    return services::InvalidField("MODEL_DIR",
                                  absl::StrCat("\"", options.model_dir,
                                               "\" is no directory; give one with config.json, "
                                               "model.safetensors and tokenizer.json"));
  }
  return fs::path(options.model_dir);
}

absl::Status MakeLogDir(const std::string& log_dir) {
  if (log_dir.empty()) return absl::OkStatus();
  std::error_code error;
  fs::create_directories(log_dir, error);
  if (!error) return absl::OkStatus();
  return services::InvalidField("--log-dir",
                                absl::StrCat("cannot make ", log_dir, ": ", error.message()));
}

// What the user hears when everything serves.
struct Facts {
  std::string model;
  std::string model_dir;
  std::string log_dir;
};

void PrintJson(const Facts& facts, const ChainPorts& ports) {
  nlohmann::ordered_json out;
  if (ports.gateway) out["gateway_url"] = "http://" + ports.gateway->client_address();
  out["parser_address"] = ports.parser.client_address();
  out["tokenizer_address"] = ports.tokenizer.client_address();
  out["engine_address"] = ports.engine.client_address();
  out["engine_admin_address"] = ports.engine_admin.client_address();
  out["parser_metrics_address"] = ports.parser_metrics.client_address();
  out["tokenizer_metrics_address"] = ports.tokenizer_metrics.client_address();
  out["engine_metrics_address"] = ports.engine_metrics.client_address();
  out["model"] = facts.model;
  out["model_dir"] = facts.model_dir;
  if (!facts.log_dir.empty()) out["log_dir"] = facts.log_dir;
  std::printf("%s\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void PrintTable(const Facts& facts, const ChainPorts& ports) {
  const auto row = [](const char* what, const std::string& address, const char* note) {
    const int width = *note == '\0' ? 0 : 32;  // no spaces at the end
    std::printf("  %-12s %-*s%s\n", what, width, address.c_str(), note);
  };
  std::printf("\n%s is served\n\n", facts.model.c_str());
  if (ports.gateway) {
    row("gateway", absl::StrCat("http://", ports.gateway->client_address(), "/v1"),
        "OpenAI clients");
  }
  row("parser", ports.parser.client_address(), "gRPC: messages in, reasoning and tool calls out");
  row("tokenizer", ports.tokenizer.client_address(), "gRPC: text in, text out");
  row("engine", ports.engine.client_address(), "gRPC: token ids in, token ids out");
  row("", ports.engine_admin.client_address(), "gRPC: the engine's admin service");
  std::printf("\n  /metrics over HTTP\n");
  if (ports.gateway) row("gateway", ports.gateway->client_address(), "");
  row("parser", ports.parser_metrics.client_address(), "");
  row("tokenizer", ports.tokenizer_metrics.client_address(), "");
  row("engine", ports.engine_metrics.client_address(), "");
  if (!facts.log_dir.empty()) std::printf("\n  logs in %s\n", facts.log_dir.c_str());
  std::printf("\nCtrl-C stops everything.\n");
}

int Run(UpOptions& options) {
  if (options.bin_dir.empty()) {
    const absl::StatusOr<fs::path> own = OwnFolder();
    if (!own.ok()) return Fail(own.status(), services::kExitFailure);
    options.bin_dir = own->string();
  }
  const absl::StatusOr<fs::path> model = ModelOf(options, options.bin_dir);
  if (!model.ok()) return Fail(model.status(), services::kExitBadFlags);
  if (absl::Status s = MakeLogDir(options.log_dir); !s.ok()) {
    return Fail(s, services::kExitBadFlags);
  }
  const absl::StatusOr<ChainPorts> ports = TakePorts(options);
  if (!ports.ok()) return Fail(ports.status(), services::kExitFailure);
  absl::StatusOr<std::vector<ChildSpec>> specs =
      PlanChain(options, *ports, options.bin_dir, model->string());
  if (!specs.ok()) return Fail(specs.status(), services::kExitFailure);

  const Facts facts = {.model = options.model_name.empty()
                                    ? fs::weakly_canonical(*model).filename().string()
                                    : options.model_name,
                       .model_dir = model->string(),
                       .log_dir = options.log_dir};
  // gRPC would write to standard error itself; what matters of a connection is the child's health.
  const services::Logger quiet({.service = "up", .level = services::LogLevel::kOff, .sink = {}});
  services::RouteGrpcLogs(&quiet);
  Console console(STDERR_FILENO);
  console.Say(
      "tessera up",
      absl::StrCat("model ", facts.model_dir,
                   options.model_dir.empty() ? " (the demo model, since none was named)" : ""));
  EventLoop loop(services::RealClock());
  int exit_status = 0;
  {
    ChainSession session(*std::move(specs), {.loop = loop,
                                             .console = console,
                                             .ports = *ports,
                                             .verbose = options.verbose,
                                             .drain_max = absl::Seconds(options.drain_timeout_s),
                                             .restart = {},
                                             .on_ready = [&] {
                                               (options.json ? PrintJson : PrintTable)(facts,
                                                                                       *ports);
                                               std::fflush(stdout);
                                             }});
    exit_status = session.Run();
  }
  services::RouteGrpcLogs(nullptr);
  return exit_status;
}

void AddModelFlags(CLI::App& up, UpOptions& o) {
  up.add_option("model_dir", o.model_dir, "model directory in hub layout; default: the demo model");
  up.add_option("--model-name", o.model_name, "name that requests give; default: the directory's");
  up.add_option("--device", o.device, "where the model runs: cpu or cuda");
  up.add_option("--workers", o.workers, "worker processes, one a device");
  up.add_option("--threads", o.threads, "compute threads of a worker; default: one a core");
  up.add_option("--max-sequences", o.sequences_max, "sequences that run at once");
  up.add_option("--max-model-len", o.model_len_max,
                "prompt and generated tokens of one sequence; default: the model's");
  up.add_option("--kv-memory", o.kv_memory, "memory of the KV pool (256MiB, 2GiB)");
  up.add_option("--default-chat-template-kwargs", o.default_chat_template_kwargs,
                "JSON object of template variables; a request's own win, key by key");
}

void AddAddressFlags(CLI::App& up, UpOptions& o) {
  up.add_option("--host", o.host, "host that the gateway listens on; all others are local")
      ->capture_default_str();
  up.add_option("--port", o.port, "HTTP port of the gateway; 0: a free one")->capture_default_str();
  const std::string otherwise = absl::StrCat(" with --port ", kGatewayPort, ", else a free one");
  up.add_option("--engine-port", o.engine_port, absl::StrCat("default: ", kEnginePort, otherwise));
  up.add_option("--tokenizer-port", o.tokenizer_port,
                absl::StrCat("default: ", kTokenizerPort, otherwise));
  up.add_option("--parser-port", o.parser_port, absl::StrCat("default: ", kParserPort, otherwise));
  up.add_option("--metrics-port", o.metrics_port,
                absl::StrCat("of the engine; tokenizer and parser follow; default: ", kMetricsPort,
                             otherwise))
      ->check(CLI::Range(0, 65533));
  up.add_flag("--gateway,!--no-gateway", o.gateway, "OpenAI over HTTP (default on)");
}

void AddProcessFlags(CLI::App& up, UpOptions& o) {
  up.add_flag("--json", o.json, "print the addresses as one line of JSON");
  up.add_option("--log-dir", o.log_dir, "keep each process's log here, in NAME.log");
  up.add_option("--log-level", o.log_level, "of the processes: debug, info, warning, error or off")
      ->capture_default_str();
  up.add_flag("--verbose", o.verbose,
              "show all that the processes log, not warnings and errors only");
  up.add_option("--bin-dir", o.bin_dir, "folder of tessera-engine and so on; default: this one's");
  up.add_option("--drain-timeout-s", o.drain_timeout_s,
                "how long running streams may go on after SIGTERM, in seconds")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  up.add_option("--engine-flag", o.engine_flags,
                "passed on as it is, may be repeated: --engine-flag=--kv-blocks=64");
  up.add_option("--tokenizer-flag", o.tokenizer_flags, "the same for the tokenizer");
  up.add_option("--parser-flag", o.parser_flags, "the same for the parser");
  up.add_option("--gateway-flag", o.gateway_flags, "the same for the gateway");
}

}  // namespace

void AddUpCommand(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<UpOptions>();
  CLI::App* up = app.add_subcommand("up", "run everything on this machine, until Ctrl-C");
  AddModelFlags(*up, *options);
  AddAddressFlags(*up, *options);
  AddProcessFlags(*up, *options);
  up->callback([options, &exit_status] { exit_status = Run(*options); });
}

}  // namespace tessera::cli

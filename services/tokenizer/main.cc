// tessera-tokenizer: the TokenizerService as a process.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "services/clients/channel.h"
#include "services/clients/engine_client.h"
#include "services/common/clock.h"
#include "services/common/field_error.h"
#include "services/common/server_host.h"
#include "services/common/server_options.h"
#include "services/common/version.h"
#include "services/tokenizer/prompt_builder.h"
#include "services/tokenizer/text_model.h"
#include "services/tokenizer/tokenizer_service.h"

namespace tessera::services {
namespace {

constexpr size_t kPoolThreadsMax = 16;

struct Options {
  ServerOptions server = {
      .listen = "127.0.0.1:50052", .admin_listen = "", .metrics_listen = "127.0.0.1:9102"};
  std::string model;
  std::string engine = "127.0.0.1:50051";
  std::string default_chat_template_kwargs = "{}";
  bool allow_request_templates = false;
  bool protect_control_tokens = true;
  size_t pool_threads = 0;
};

int Fail(const absl::Status& status, int exit_code) {
  std::cerr << "tessera-tokenizer: " << status.message() << "\n";
  return exit_code;
}

absl::StatusOr<PromptOptions> PromptOptionsOf(const Options& options) {
  PromptOptions prompt;
  prompt.protect_control_tokens = options.protect_control_tokens;
  absl::StatusOr<nlohmann::ordered_json> kwargs =
      ParseJsonField(options.default_chat_template_kwargs, "--default-chat-template-kwargs");
  if (!kwargs.ok()) return kwargs.status();
  if (!kwargs->is_object()) {
    return InvalidField("--default-chat-template-kwargs", "is no JSON object");
  }
  prompt.default_chat_template_kwargs = *std::move(kwargs);
  return prompt;
}

int Serve(const Options& options) {
  absl::StatusOr<PromptOptions> prompt_options = PromptOptionsOf(options);
  if (!prompt_options.ok()) return Fail(prompt_options.status(), kExitBadFlags);
  absl::StatusOr<std::unique_ptr<ServerHost>> created =
      ServerHost::Create("tokenizer", options.server);
  if (!created.ok()) return Fail(created.status(), kExitBadFlags);
  ServerHost& host = **created;
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = MakeChannel(options.engine);
  if (!channel.ok()) return Fail(channel.status(), kExitBadFlags);
  const std::unique_ptr<EngineClient> engine = MakeEngineClient(*channel);

  const size_t threads =
      options.pool_threads > 0
          ? options.pool_threads
          : std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kPoolThreadsMax);
  TokenizerService service(
      {.engine = *engine,
       .log = host.log(),
       .clock = RealClock(),
       .request_ids = host.request_ids(),
       .registry = host.registry(),
       .pool_threads = threads,
       .on_serving = [&host](bool serving) { host.health().Set(kTokenizerServiceName, serving); }});
  host.AddService(&service, kTokenizerServiceName);
  if (absl::Status status = host.Start(); !status.ok()) return Fail(status, kExitFailure);

  const absl::Duration begin = RealClock().Monotonic();
  absl::StatusOr<std::shared_ptr<const TextModel>> model =
      LoadTextModel(options.model, options.allow_request_templates);
  if (!model.ok()) {
    host.Stop(absl::ZeroDuration());
    return Fail(absl::Status(model.status().code(), absl::StrCat("--model ", options.model, ": ",
                                                                 model.status().message())),
                kExitFailure);
  }
  const double seconds = absl::ToDoubleSeconds(RealClock().Monotonic() - begin);
  service.metrics().model_load_seconds.Set(seconds);
  host.log().Info("model loaded", {{"model", options.model},
                                   {"vocab_size", (*model)->tokenizer->vocab_size()},
                                   {"has_chat_template", (*model)->templates != nullptr},
                                   {"seconds", seconds}});
  service.SetModel(*std::move(model), *std::move(prompt_options));
  return host.Run();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Text or chat messages in, text out, over gRPC.", "tessera-tokenizer");
  app.set_version_flag("--version", std::string("tessera-tokenizer ") + kVersion);
  app.add_option("--model", options.model, "model directory in hub layout, or a tokenizer file")
      ->required();
  app.add_option("--engine", options.engine, "address of the engine")->capture_default_str();
  app.add_option("--default-chat-template-kwargs", options.default_chat_template_kwargs,
                 "JSON object of template variables; a request's own win, key by key")
      ->capture_default_str();
  app.add_flag("--allow-request-templates", options.allow_request_templates,
               "let requests bring their own chat template");
  app.add_flag("--protect-control-tokens,!--no-protect-control-tokens",
               options.protect_control_tokens,
               "text of callers never becomes control tokens (default on)");
  app.add_option("--worker-threads", options.pool_threads,
                 "threads for long prompts; 0 takes one a core")
      ->check(CLI::Range(size_t{0}, kPoolThreadsMax))
      ->capture_default_str();
  AddServerFlags(app, options.server);
  if (const int exit_code = ParseFlags(app, argc, argv); exit_code >= 0) return exit_code;
  return Serve(options);
}

}  // namespace
}  // namespace tessera::services

int main(int argc, char** argv) { return tessera::services::Main(argc, argv); }

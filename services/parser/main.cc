// tessera-parser: messages in, reasoning, content and tool calls out, over the tokenizer service.

#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "services/clients/channel.h"
#include "services/clients/tokenizer_client.h"
#include "services/common/clock.h"
#include "services/common/server_host.h"
#include "services/common/server_options.h"
#include "services/parser/formats/format_registry.h"
#include "services/parser/parser_metrics.h"
#include "services/parser/parser_service.h"

namespace tessera::parser {
namespace {

struct Options {
  services::ServerOptions server;
  std::string tokenizer = "127.0.0.1:50052";
  FormatFlags formats;
};

int Fail(const absl::Status& status, int exit_code) {
  std::fprintf(stderr, "tessera-parser: %s\n", std::string(status.message()).c_str());
  return exit_code;
}

int Main(int argc, char** argv) {
  Options options;
  options.server.listen = "127.0.0.1:50053";
  options.server.metrics_listen = "127.0.0.1:9103";
  CLI::App app("Tessera's parser service: reasoning and tool calls");
  services::AddServerFlags(app, options.server);
  app.add_option("--tokenizer", options.tokenizer, "HOST:PORT of the tokenizer service");
  app.add_option("--reasoning-format", options.formats.reasoning_format,
                 "how the model marks its reasoning; auto reads the chat template");
  app.add_option("--tool-format", options.formats.tool_format,
                 "how the model writes tool calls; auto reads the chat template");
  if (const int code = services::ParseFlags(app, argc, argv); code >= 0) return code;
  const auto or_none = [](const std::string& name) {
    return name == "auto" ? std::string("none") : name;
  };
  if (absl::Status checked = CheckFormatNames(or_none(options.formats.reasoning_format),
                                              or_none(options.formats.tool_format));
      !checked.ok()) {
    return Fail(checked, services::kExitBadFlags);
  }

  absl::StatusOr<std::unique_ptr<services::ServerHost>> host =
      services::ServerHost::Create("parser", options.server);
  if (!host.ok()) return Fail(host.status(), services::kExitBadFlags);
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      services::MakeChannel(options.tokenizer, options.server.tls);
  if (!channel.ok()) return Fail(channel.status(), services::kExitBadFlags);
  const std::unique_ptr<services::TokenizerClient> client =
      services::MakeTokenizerClient(*std::move(channel));
  ParserMetrics metrics((*host)->registry());
  ParserService service(options.formats, *client, (*host)->log(), (*host)->request_ids(),
                        services::RealClock(), metrics,
                        [&host](bool serving) { (*host)->health().Set(kServiceName, serving); });
  (*host)->AddService(&service, kServiceName);
  if (absl::Status started = (*host)->Start(); !started.ok()) {
    return Fail(started, services::kExitFailure);
  }
  return (*host)->Run();
}

}  // namespace
}  // namespace tessera::parser

int main(int argc, char** argv) { return tessera::parser::Main(argc, argv); }

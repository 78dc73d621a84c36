// tessera-gateway: OpenAI JSON over HTTP and SSE, over the parser service.

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "services/clients/channel.h"
#include "services/clients/parser_client.h"
#include "services/common/clock.h"
#include "services/common/server_host.h"
#include "services/common/server_options.h"
#include "services/common/version.h"
#include "services/gateway/gateway.h"
#include "services/gateway/http_server.h"
#include "services/gateway/reply_format.h"

namespace tessera::gateway {
namespace {

// The gateway serves no gRPC of its own but health and reflection; this is the name that health
// watchers ask for.
constexpr char kHealthName[] = "tessera.gateway";

struct Options {
  services::ServerOptions server = {.listen = "127.0.0.1:50054", .listen_flag = "--health-listen"};
  std::string listen = "127.0.0.1:8000";
  std::string parser = "127.0.0.1:50053";
  std::string reasoning_field = "both";
  HttpLimits http;
};

int Fail(const absl::Status& status, int exit_code) {
  std::fprintf(stderr, "tessera-gateway: %s\n", std::string(status.message()).c_str());
  return exit_code;
}

void AddFlags(CLI::App& app, Options& o) {
  app.set_version_flag("--version", std::string("tessera-gateway ") + services::kVersion);
  app.add_option("--listen", o.listen, "HTTP address, HOST:PORT; also serves /metrics")
      ->capture_default_str();
  app.add_option("--parser", o.parser, "HOST:PORT of the parser service")->capture_default_str();
  app.add_option("--reasoning-field", o.reasoning_field,
                 "where clients find the reasoning: reasoning, reasoning_content or both")
      ->capture_default_str()
      ->check(CLI::IsMember({"both", "reasoning", "reasoning_content"}));
  app.add_option("--max-connections", o.http.connections_max, "open client connections")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 16));
  app.add_option("--max-body-bytes", o.http.body_bytes_max, "largest request body")
      ->capture_default_str()
      ->check(CLI::Range(size_t{1024}, size_t{services::kMessageBytesMax}));
  services::AddServerFlags(app, o.server);
}

ReasoningField FieldFor(const std::string& name) {
  if (name == "reasoning") return ReasoningField::kReasoning;
  if (name == "reasoning_content") return ReasoningField::kReasoningContent;
  return ReasoningField::kBoth;
}

int Serve(const Options& options, services::ServerHost& host, services::ParserClient& parser) {
  Gateway gateway(
      {.parser = parser,
       .log = host.log(),
       .clock = services::RealClock(),
       .ids = host.request_ids(),
       .registry = host.registry(),
       .reasoning_field = FieldFor(options.reasoning_field),
       .serving_changed = [&host](bool serving) { host.health().Set(kHealthName, serving); }});
  if (absl::Status started = host.Start(); !started.ok()) {
    return Fail(started, services::kExitFailure);
  }
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start(
      options.listen, options.http,
      [&gateway](std::shared_ptr<HttpExchange> exchange) { gateway.Handle(std::move(exchange)); });
  if (!server.ok()) {
    host.Stop(absl::ZeroDuration());
    return Fail(server.status(), services::kExitFailure);
  }
  gateway.SetServer(server->get());
  host.log().Info("listening", {{"http_address", (*server)->address()}});
  host.OnDrain([&gateway] { gateway.Drain(); });
  host.DrainToo([&](absl::Duration limit) {
    if (const size_t left = (*server)->Drain(limit); left != 0) {
      host.log().Warning("requests are cut", {{"requests", left}});
    }
  });
  const int exit_code = host.Run();
  gateway.SetServer(nullptr);
  server->reset();  // cancels what is left; the gateway then waits for it
  return exit_code;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("OpenAI JSON over HTTP and SSE.", "tessera-gateway");
  AddFlags(app, options);
  if (const int code = services::ParseFlags(app, argc, argv); code >= 0) return code;
  absl::StatusOr<std::unique_ptr<services::ServerHost>> host =
      services::ServerHost::Create("gateway", options.server);
  if (!host.ok()) return Fail(host.status(), services::kExitBadFlags);
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      services::MakeChannel(options.parser, options.server.tls);
  if (!channel.ok()) return Fail(channel.status(), services::kExitBadFlags);
  const std::unique_ptr<services::ParserClient> parser =
      services::MakeParserClient(*std::move(channel));
  (*host)->health().Set(kHealthName, false);
  return Serve(options, **host, *parser);
}

}  // namespace
}  // namespace tessera::gateway

int main(int argc, char** argv) { return tessera::gateway::Main(argc, argv); }

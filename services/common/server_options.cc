#include "services/common/server_options.h"

#include <iostream>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/common/field_error.h"
#include "services/common/log.h"

namespace tessera::services {
namespace {

absl::Status CheckAddress(std::string_view flag, const std::string& address, bool may_be_empty,
                          bool may_be_unix = true) {
  if (address.empty() && may_be_empty) return absl::OkStatus();
  if (may_be_unix && address.rfind("unix:", 0) == 0 && address.size() > 5) return absl::OkStatus();
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return InvalidField(flag, absl::StrCat("is \"", address,
                                           "\"; give HOST:PORT with a port from 0 to 65535, for "
                                           "instance 127.0.0.1:50051"));
  }
  return absl::OkStatus();
}

absl::Status WithFlag(std::string_view flag, const absl::Status& status) {
  return status.ok() ? status
                     : InvalidField(flag, {status.message().data(), status.message().size()});
}

}  // namespace

void AddServerFlags(CLI::App& app, ServerOptions& options) {
  if (!options.listen.empty()) {
    app.add_option(options.listen_flag, options.listen, "gRPC address, HOST:PORT or unix:PATH")
        ->capture_default_str();
  }
  if (!options.admin_listen.empty()) {
    app.add_option("--admin-listen", options.admin_listen, "gRPC address of the admin service")
        ->capture_default_str();
  }
  if (!options.metrics_listen.empty()) {
    app.add_option("--metrics-listen", options.metrics_listen, "HTTP address of /metrics")
        ->capture_default_str();
  }
  app.add_option("--log-level", options.log_level, "debug, info, warning, error or off")
      ->capture_default_str();
  app.add_option("--log-format", options.log_format, "json or text")->capture_default_str();
  app.add_option("--drain-timeout-s", options.drain_timeout_s,
                 "how long running calls may go on after SIGTERM, in seconds")
      ->capture_default_str();
}

absl::Status ValidateServerOptions(const ServerOptions& options) {
  absl::Status status = CheckAddress(options.listen_flag, options.listen, /*may_be_empty=*/false);
  status.Update(CheckAddress("--admin-listen", options.admin_listen, /*may_be_empty=*/true));
  status.Update(CheckAddress("--metrics-listen", options.metrics_listen, /*may_be_empty=*/true,
                             /*may_be_unix=*/false));
  status.Update(WithFlag("--log-level", ParseLogLevel(options.log_level).status()));
  status.Update(WithFlag("--log-format", ParseLogFormat(options.log_format).status()));
  constexpr double kDrainSecondsMax = 24 * 3600;
  if (!(options.drain_timeout_s >= 0 && options.drain_timeout_s <= kDrainSecondsMax)) {
    status.Update(InvalidField("--drain-timeout-s",
                               absl::StrCat("is ", options.drain_timeout_s,
                                            "; give a number from 0 to ", kDrainSecondsMax)));
  }
  return status;
}

int ParseFlags(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << app.get_name() << ": " << error.what() << " (--help lists the flags)\n";
    return kExitBadFlags;
  }
  return -1;
}

}  // namespace tessera::services

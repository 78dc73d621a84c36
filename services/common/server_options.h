#ifndef TESSERA_SERVICES_COMMON_SERVER_OPTIONS_H_
#define TESSERA_SERVICES_COMMON_SERVER_OPTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "services/common/credentials.h"

namespace CLI {
class App;
}

namespace tessera::services {

// What every process can be told. Addresses are HOST:PORT, where port 0 takes a free one, or (not
// for metrics) unix:PATH, which costs a fifth less time a message than TCP on one machine.
struct ServerOptions {
  std::string listen;
  std::string listen_flag = "--listen";  // what sets `listen`, as errors name it
  std::string admin_listen;              // empty: no admin port
  std::string metrics_listen;
  std::string log_level = "info";
  std::string log_format = "json";
  double drain_timeout_s = 30;
  TlsFiles tls;
};

// Adds --log-level, --log-format, --drain-timeout-s, and, for each address that `options` names,
// its flag: listen_flag, --metrics-listen, --admin-listen. The values in `options` are the
// defaults.
void AddServerFlags(CLI::App& app, ServerOptions& options);

// Errors: kInvalidArgument naming the flag.
absl::Status ValidateServerOptions(const ServerOptions& options);

// Exit codes of every process.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;   // could not start or could not go on
inline constexpr int kExitBadFlags = 2;  // one clear line says which

// Parses the command line with CLI11, which throws, at this one place. Returns -1 to go on, else
// the exit code (0 after --help or --version, 2 after one line about a bad flag on standard error).
int ParseFlags(CLI::App& app, int argc, char** argv);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_SERVER_OPTIONS_H_

#ifndef TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_COMMAND_H_
#define TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_COMMAND_H_

#include "CLI/CLI.hpp"

namespace tessera::cli {

// Adds `bench serve` (closed loop) and `bench load` (open loop) to the command `bench`: requests to
// a running gateway (--url), or with --engine ids to a running engine. Each prints a table with
// bars, or with --json one JSON line. `exit_status` is 0 if no request failed, 1 if some did or
// nothing answers, 2 for a flag that cannot be. `bench` and `exit_status` must live until the parse
// of the command line is over.
void AddTrafficBenchCommands(CLI::App& bench, int& exit_status);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_COMMAND_H_

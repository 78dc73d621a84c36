#ifndef TESSERA_SERVICES_CLI_COMMANDS_MODEL_BENCH_COMMAND_H_
#define TESSERA_SERVICES_CLI_COMMANDS_MODEL_BENCH_COMMAND_H_

#include "CLI/CLI.hpp"

namespace tessera::cli {

// Adds `bench decode` and `bench prefill` to the command `bench`: the model alone, in this process.
// Each prints a table with a bar a round, or with --json one JSON line: tokens a second (best and
// median of --rounds), milliseconds a step, and the bytes of weights that the checkpoint holds.
void AddModelBenchCommands(CLI::App& bench, int& exit_status);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_MODEL_BENCH_COMMAND_H_

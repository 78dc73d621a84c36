#ifndef TESSERA_SERVICES_CLI_COMMANDS_INSPECT_INSPECT_COMMAND_H_
#define TESSERA_SERVICES_CLI_COMMANDS_INSPECT_INSPECT_COMMAND_H_

#include "CLI/CLI.hpp"

namespace tessera::cli {

// Adds `inspect MODEL_DIR`: opens a checkpoint, checks all of it and prints what it holds. It runs
// inside app.parse() and leaves its exit status in `exit_status` (0 sound, 1 refused), which must
// outlive `app`.
void AddInspectCommand(CLI::App& app, int& exit_status);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_INSPECT_INSPECT_COMMAND_H_

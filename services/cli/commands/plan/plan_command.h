#ifndef TESSERA_SERVICES_CLI_COMMANDS_PLAN_PLAN_COMMAND_H_
#define TESSERA_SERVICES_CLI_COMMANDS_PLAN_PLAN_COMMAND_H_

#include "CLI/CLI.hpp"

namespace tessera::cli {

// Adds `plan MODEL_DIR`: prints what a worker needs, from config.json alone. It runs inside
// app.parse() and leaves its exit status in `exit_status` (0 fits, 1 does not or error), which must
// outlive `app`.
void AddPlanCommand(CLI::App& app, int& exit_status);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_PLAN_PLAN_COMMAND_H_

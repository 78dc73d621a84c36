#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_UP_COMMAND_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_UP_COMMAND_H_

#include "CLI/CLI.hpp"

namespace tessera::cli {

// Adds `up [MODEL_DIR]`: runs engine, tokenizer, parser and gateway until a signal. It runs inside
// app.parse() and leaves its exit status in `exit_status`, which must outlive `app`.
void AddUpCommand(CLI::App& app, int& exit_status);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_UP_COMMAND_H_

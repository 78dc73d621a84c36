#ifndef TESSERA_SERVICES_CLI_COMMANDS_TOKENIZE_TOKENIZE_COMMAND_H_
#define TESSERA_SERVICES_CLI_COMMANDS_TOKENIZE_TOKENIZE_COMMAND_H_

#include "CLI/CLI.hpp"

namespace tessera::cli {

// Adds `tokenize` and `detokenize`, JSON-lines filters over a tokenizer (commands.md of this
// folder's README gives the fields). A sub-command runs inside app.parse() and leaves its exit
// status in `exit_status`, which must outlive `app`.
void AddTokenizeCommands(CLI::App& app, int& exit_status);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_TOKENIZE_TOKENIZE_COMMAND_H_

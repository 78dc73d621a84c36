#ifndef TESSERA_SERVICES_CLI_COMMANDS_CHAT_CHAT_COMMAND_H_
#define TESSERA_SERVICES_CLI_COMMANDS_CHAT_CHAT_COMMAND_H_

#include "CLI/CLI.hpp"

namespace tessera::cli {

// Adds the command `chat`: talks to a running parser service. When it has run, `exit_status` is 0,
// 1 for a failure, 2 for a flag that cannot be, or 130 if Ctrl-C cancelled the one answer.
// `app` and `exit_status` must live until the parse of the command line is over.
void AddChatCommand(CLI::App& app, int& exit_status);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_CHAT_CHAT_COMMAND_H_

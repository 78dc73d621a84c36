// tessera: one command line for trying every part.

#include "CLI/CLI.hpp"
#include "services/cli/commands/bench/traffic_command.h"
#include "services/cli/commands/chat/chat_command.h"
#include "services/cli/commands/inspect/inspect_command.h"
#include "services/cli/commands/model/bench_command.h"
#include "services/cli/commands/model/model_commands.h"
#include "services/cli/commands/parse/parse_command.h"
#include "services/cli/commands/plan/plan_command.h"
#include "services/cli/commands/render/render_command.h"
#include "services/cli/commands/tokenize/tokenize_command.h"
#include "services/cli/commands/up/up_command.h"

int main(int argc, char** argv) {
  CLI::App app("Tessera serves NVIDIA Nemotron-3 hybrid models");
  app.set_version_flag("--version", "tessera 0.1.0");
  app.require_subcommand(1);
  int exit_status = 0;
  tessera::cli::AddChatCommand(app, exit_status);
  tessera::cli::AddInspectCommand(app, exit_status);
  tessera::cli::AddModelCommands(app, exit_status);
  tessera::cli::AddParseCommand(app, exit_status);
  tessera::cli::AddPlanCommand(app, exit_status);
  tessera::cli::AddRenderCommand(app, exit_status);
  tessera::cli::AddTokenizeCommands(app, exit_status);
  tessera::cli::AddUpCommand(app, exit_status);
  CLI::App* const bench = app.add_subcommand("bench", "measure");
  bench->require_subcommand(1);
  tessera::cli::AddModelBenchCommands(*bench, exit_status);
  tessera::cli::AddTrafficBenchCommands(*bench, exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 throws for --help and --version too, with code 0.
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_status;
}

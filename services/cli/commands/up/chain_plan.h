#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_CHAIN_PLAN_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_CHAIN_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/commands/up/ports.h"
#include "services/cli/commands/up/process_group.h"
#include "services/cli/commands/up/up_options.h"

namespace tessera::cli {

// Every port of the chain, held as long as this lives.
struct ChainPorts {
  HeldPort engine;
  HeldPort engine_admin;
  HeldPort engine_metrics;
  HeldPort tokenizer;
  HeldPort tokenizer_metrics;
  HeldPort parser;
  HeldPort parser_metrics;
  std::optional<HeldPort> gateway;
  std::optional<HeldPort> gateway_health;
};

// Errors: those of HeldPort::Take.
absl::StatusOr<ChainPorts> TakePorts(const UpOptions& options);

// What the chain runs as, in the order in which it is started; stopping goes backwards.
enum ChainIndex : size_t { kEngine, kTokenizer, kParser, kGateway };

// Errors: kNotFound names the first program that is not in `bin_dir`.
absl::StatusOr<std::vector<ChildSpec>> PlanChain(const UpOptions& options, const ChainPorts& ports,
                                                 const std::string& bin_dir,
                                                 const std::string& model_dir);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_CHAIN_PLAN_H_

#ifndef TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_REPORT_H_
#define TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_REPORT_H_

#include <string>

#include "nlohmann/json.hpp"
#include "services/cli/commands/bench/traffic_summary.h"

namespace tessera::cli {

// What was done to get the figures; stands first in the report.
struct TrafficSetup {
  std::string bench;   // "serve" or "load"
  std::string target;  // where to, and over which door
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  GoodputLimits limits;
  bool goodput = false;  // shown in the table; JSON always has it
};

// One JSON object: the setup, counts, rates, and each distribution as {"mean", "p50", "p90", "p99",
// "max"} in milliseconds. Pure.
nlohmann::ordered_json TrafficJson(const TrafficSetup& setup, const TrafficSummary& summary);

// A table and bar charts for people, at most 80 columns wide, with a final newline. Pure.
std::string TrafficTable(const TrafficSetup& setup, const TrafficSummary& summary);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_REPORT_H_

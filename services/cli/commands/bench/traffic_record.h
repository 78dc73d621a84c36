#ifndef TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_RECORD_H_
#define TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tessera::cli {

// Output that came at one moment.
struct TokenArrival {
  absl::Duration at;
  uint32_t tokens = 0;
};

// What was seen of one request. Times are since the measurement began.
struct RequestRecord {
  absl::Duration sent;  // open loop: when it was due, so that a late sender hides no waiting
  absl::Duration ended;
  std::vector<TokenArrival> arrivals;  // in order of time
  uint32_t prompt_tokens = 0;          // 0: the server did not say
  uint32_t output_tokens = 0;
  std::string error;    // a short kind, "HTTP 429"; empty: the request succeeded
  std::string message;  // what was said about it
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_RECORD_H_

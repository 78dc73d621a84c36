#ifndef TESSERA_SERVICES_CLI_COMMANDS_BENCH_ENGINE_TARGET_H_
#define TESSERA_SERVICES_CLI_COMMANDS_BENCH_ENGINE_TARGET_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/cli/commands/bench/traffic_target.h"
#include "services/clients/engine_client.h"

namespace tessera::cli {

struct EngineTraffic {
  uint32_t prompt_tokens = 64;
  uint32_t max_tokens = 128;
  bool ignore_eos = true;
  float temperature = 0;
  uint64_t seed = 0;  // of prompts and of sampling
  absl::Duration timeout = absl::Minutes(5);
};

// Sends ids to an engine, without any text. Prompts are random ids, different for each index, so
// that no cache helps; the same seed gives the same ones. Borrows the client.
// Asks the engine for its vocabulary and its limits, and waits for the answer.
// Errors: those of the call; kInvalidArgument if prompt and answer do not fit the model's context.
absl::StatusOr<std::unique_ptr<TrafficTarget>> MakeEngineTarget(services::EngineClient& engine,
                                                                const EngineTraffic& traffic);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_BENCH_ENGINE_TARGET_H_

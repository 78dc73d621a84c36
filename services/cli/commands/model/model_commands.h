#ifndef TESSERA_SERVICES_CLI_COMMANDS_MODEL_MODEL_COMMANDS_H_
#define TESSERA_SERVICES_CLI_COMMANDS_MODEL_MODEL_COMMANDS_H_

#include <cstdint>
#include <set>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "services/cli/commands/model/model_runner.h"

namespace tessera::cli {

// Adds `logits` and `generate`, filters of JSON lines that run a model in this process. When one
// has run, `exit_status` is 0 only if no line failed.
void AddModelCommands(CLI::App& app, int& exit_status);

// {"prompt": [ids], "positions": [...]} -> {"logits": [[...], ...]}, teacher-forced.
absl::StatusOr<nlohmann::ordered_json> LogitsLine(ModelRunner& runner,
                                                  const nlohmann::ordered_json& line);

// {"prompt": [ids], "max_tokens", and any of temperature (default 0), top_k, top_p, min_p, seed,
// repetition_penalty, presence_penalty, frequency_penalty, logit_bias {id: value}, min_tokens,
// stop_token_ids, ignore_eos} -> {"ids": [...], "finish_reason": "stop" | "length"}.
absl::StatusOr<nlohmann::ordered_json> GenerateLine(ModelRunner& runner,
                                                    const std::set<uint32_t>& eos_ids,
                                                    const nlohmann::ordered_json& line);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_MODEL_MODEL_COMMANDS_H_

#ifndef TESSERA_SERVICES_CLI_COMMANDS_MODEL_MODEL_RUNNER_H_
#define TESSERA_SERVICES_CLI_COMMANDS_MODEL_MODEL_RUNNER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/models/model.h"

namespace tessera::cli {

struct RunnerOptions {
  std::string model;        // a checkpoint's folder
  uint32_t chunk = 512;     // prompt tokens of one step
  uint32_t sequences = 1;   // run side by side
  uint32_t tokens_max = 0;  // of one sequence; 0: the model's context, at most kRunnerTokensMax
  int threads = 0;
};
inline constexpr uint32_t kRunnerTokensMax = 1 << 16;

// A model without an engine: sequences that begin together and stay in their slots. For commands
// that try the model alone. Threading: one thread.
class ModelRunner {
 public:
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Open(const RunnerOptions& options);

  const engine::ModelShape& shape() const { return model_->shape(); }
  uint32_t tokens_max() const { return tokens_max_; }

  // Forgets sequence `index`; its next token is its first.
  void Restart(uint32_t index) { positions_[index] = 0; }

  // Appends tokens to sequence `index`, in steps of `chunk`, and returns the logits at `offsets` of
  // them, row by row. Errors: kOutOfRange beyond tokens_max(); those of Model::Forward.
  absl::StatusOr<std::vector<float>> Append(uint32_t index, std::span<const engine::TokenId> tokens,
                                            std::span<const uint32_t> offsets);

  // One step: one token for each of the first `tokens.size()` sequences; their logits, row by row.
  absl::StatusOr<std::span<const float>> Step(std::span<const engine::TokenId> tokens);

 private:
  ModelRunner(const RunnerOptions& options, std::unique_ptr<engine::Model> model,
              uint32_t tokens_max);

  const RunnerOptions options_;
  const std::unique_ptr<engine::Model> model_;
  const uint32_t tokens_max_;
  std::vector<std::vector<engine::BlockId>> blocks_;
  std::vector<uint32_t> positions_;
  std::vector<float> step_logits_;
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_MODEL_MODEL_RUNNER_H_

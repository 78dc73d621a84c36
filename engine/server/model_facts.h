#ifndef TESSERA_ENGINE_SERVER_MODEL_FACTS_H_
#define TESSERA_ENGINE_SERVER_MODEL_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/ids.h"

namespace tessera::engine {

// What requests are checked against and what GetModelInfo answers; fixed when the process starts.
struct ModelFacts {
  std::string name;
  std::string architecture;
  uint32_t vocab = 0;
  uint32_t context_tokens_max = 0;  // prompt and generated tokens of one sequence
  std::vector<TokenId> eos_ids;
  // Where a request is silent.
  float temperature = 1.0f;
  float top_p = 1.0f;
  uint32_t top_k = 0;
  float repetition_penalty = 1.0f;

  uint32_t sequences_max = 0;
  uint32_t queue_requests_max = 0;
  std::string device;
  uint32_t workers = 1;
  std::string version;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SERVER_MODEL_FACTS_H_

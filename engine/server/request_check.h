#ifndef TESSERA_ENGINE_SERVER_REQUEST_CHECK_H_
#define TESSERA_ENGINE_SERVER_REQUEST_CHECK_H_

#include "absl/status/statusor.h"
#include "engine/core/request.h"
#include "engine/server/model_facts.h"
#include "tessera/engine/v1/engine.pb.h"

namespace tessera::engine {

inline constexpr int kLogitBiasEntriesMax = 1024;
inline constexpr int kStopTokensMax = 64;
inline constexpr uint32_t kTopLogprobsMax = 20;
inline constexpr uint32_t kChoicesMax = 16;
inline constexpr float kTemperatureMax = 100;
inline constexpr float kRepetitionPenaltyMax = 100;
inline constexpr float kLogitBiasMax = 100;

// Checks every field of a request and resolves what it leaves open: the model's sampling defaults,
// max_tokens as the room that the context leaves, the seed from `drawn_seed`. request_id and
// deadline are taken from elsewhere.
// Errors: name the field, its value, the limit and the remedy. kInvalidArgument; kOutOfRange: the
// prompt leaves no room in the context; kNotFound: another model is asked for.
absl::StatusOr<GenerationRequest> CheckRequest(const v1::GenerateRequest& proto,
                                               const ModelFacts& model, uint64_t drawn_seed);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SERVER_REQUEST_CHECK_H_

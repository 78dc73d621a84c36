#ifndef TESSERA_SERVICES_GATEWAY_SAMPLING_FIELDS_H_
#define TESSERA_SERVICES_GATEWAY_SAMPLING_FIELDS_H_

#include <cstddef>
#include <string>

#include "google/protobuf/repeated_ptr_field.h"
#include "services/gateway/json_body.h"
#include "tessera/engine/v1/engine.pb.h"

namespace tessera::gateway {

inline constexpr size_t kStopStringsMax = 16;
inline constexpr size_t kStopStringBytesMax = 1'024;
inline constexpr size_t kStopTokensMax = 64;
inline constexpr size_t kLogitBiasMax = 1'024;
// More text than this in one request cannot fit any context that we serve (262,144 tokens), so it
// is refused before it costs the layers below anything.
inline constexpr size_t kPromptBytesMax = size_t{8} << 20;

// What chat and completion requests share.
struct StreamOptions {
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
};

// Reads temperature, top_p, n, seed, max_tokens and their kin (not logprobs, which the two
// endpoints spell differently) into `sampling`. Types and what the proto can hold are checked here,
// ranges by the engine, which knows them. Errors: in `fields`.
void ReadSampling(JsonFields& fields, engine::v1::SamplingParams& sampling);

// `stop`: a string or a list of strings.
void ReadStop(JsonFields& fields, google::protobuf::RepeatedPtrField<std::string>& stop);

StreamOptions ReadStreamOptions(JsonFields& fields);

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_SAMPLING_FIELDS_H_

#ifndef TESSERA_SERVICES_COMMON_FIELD_ERROR_H_
#define TESSERA_SERVICES_COMMON_FIELD_ERROR_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tessera::services {

// An error about one field of a request, in the caller's own vocabulary ("messages[2].role").
// The field travels as a status payload, so that every surface can show it in its own form:
// google.rpc.BadRequest over gRPC, "param" in an OpenAI error body, "field" on the command line.
//
// `message` says the value, the limit and the remedy; it should not repeat the field's name, which
// is put in front: FieldError(kInvalidArgument, "max_tokens", "is 0; give at least 1") reads
// "max_tokens: is 0; give at least 1".
absl::Status FieldError(absl::StatusCode code, std::string_view field, std::string_view message);

// The common case: the request can never succeed as it is.
absl::Status InvalidField(std::string_view field, std::string_view message);

// The field that `status` is about, if it names one.
std::optional<std::string> FieldOf(const absl::Status& status);

// A copy of `status` with `prefix` put before its field (and message): used by a layer that knows
// where the part it checked stands in the whole request. No field: unchanged.
absl::Status WithFieldPrefix(const absl::Status& status, std::string_view prefix);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_FIELD_ERROR_H_

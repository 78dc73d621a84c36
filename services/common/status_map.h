#ifndef TESSERA_SERVICES_COMMON_STATUS_MAP_H_
#define TESSERA_SERVICES_COMMON_STATUS_MAP_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace tessera::services {

// A status crosses a hop in trailing metadata, which HTTP/2 peers limit to 8 KiB together; message
// and field appear twice there, once in base64. Longer ones are cut at a code point.
inline constexpr size_t kStatusMessageBytesMax = 1024;
inline constexpr size_t kStatusFieldBytesMax = 256;
// What a caller is told to wait when the status names no time of its own.
inline constexpr absl::Duration kRetryDelayDefault = absl::Seconds(1);
// ErrorInfo.domain of everything that Tessera says.
inline constexpr char kErrorDomain[] = "tessera";

// The machine-readable reason of an error (ErrorInfo.reason), in UPPER_SNAKE_CASE. Without one the
// name of the code stands for it.
absl::Status WithReason(absl::Status status, std::string_view reason);
std::optional<std::string> ReasonOf(const absl::Status& status);

// When a caller may try again (RetryInfo).
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

// The status as gRPC sends it: same code, and in grpc-status-details-bin a google.rpc.Status with
//   ErrorInfo    always: reason, domain kErrorDomain
//   BadRequest   when FieldOf(status) names a field
//   RetryInfo    for kResourceExhausted and kUnavailable, or when a delay is set
// Never holds a stack trace. Ok gives Ok.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The way back: code and message, with field, reason and retry delay when the details hold them. A
// status without details, or with broken ones, keeps code and message.
absl::Status FromGrpcStatus(const grpc::Status& status);

// The HTTP code of style 2.4: 400 bad request, 401, 403, 404, 409, 429 limit reached, 499 caller
// went away, 500 our fault, 501, 503 try again, 504 too late. Ok is 200.
int HttpStatusOf(absl::StatusCode code);

// "INVALID_ARGUMENT" and the like: the `code` label of metrics, logs and filters.
std::string_view CodeName(absl::StatusCode code);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_STATUS_MAP_H_

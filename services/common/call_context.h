#ifndef TESSERA_SERVICES_COMMON_CALL_CONTEXT_H_
#define TESSERA_SERVICES_COMMON_CALL_CONTEXT_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/server_context.h"
#include "services/common/request_id.h"

namespace tessera::services {

// A call without a deadline gets this one from the first hop.
inline constexpr absl::Duration kCallDurationMax = absl::Hours(1);
// A longer authorization value is dropped (the call is then unauthenticated).
inline constexpr size_t kAuthorizationBytesMax = 4096;

// What travels down the chain unchanged, once read from the hop above. A plain value.
// `authorization` is a secret: it is passed on and never logged.
struct CallContext {
  std::string request_id;
  std::string traceparent;    // W3C; empty when absent or malformed
  std::string authorization;  // "Bearer ..."; empty when absent
  std::chrono::system_clock::time_point deadline = std::chrono::system_clock::time_point::max();

  // Moves the deadline to at most `timeout` from now.
  void LimitTo(absl::Duration timeout);
  // How long is left; infinite without a deadline.
  absl::Duration Remaining() const;
};

// Reads the context of a call, and answers x-request-id in its initial metadata. The id is the
// caller's x-request-id if usable, else `request_id` if usable (a field of the request), else a new
// one. Call it before the first write.
CallContext ReadCallContext(grpc::CallbackServerContext& server, const std::string& request_id,
                            RequestIds& ids);

// Puts the context on a call to the hop below, which then fails fast: a dead peer gives
// kUnavailable at once instead of waiting for it to come back.
void ApplyCallContext(const CallContext& context, grpc::ClientContext& client);

// Whether the text is a W3C traceparent of version 00.
bool IsTraceparent(const std::string& text);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_CALL_CONTEXT_H_

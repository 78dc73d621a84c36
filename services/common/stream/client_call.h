#ifndef TESSERA_SERVICES_COMMON_STREAM_CLIENT_CALL_H_
#define TESSERA_SERVICES_COMMON_STREAM_CLIENT_CALL_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tessera::services {

// A call to the hop below, as its caller holds it. Threading: any thread.
class ClientCall {
 public:
  virtual ~ClientCall() = default;
  // Reads on after on_message said kPause. A Resume that comes before the pause took effect is
  // remembered, so none is ever lost; one too many is harmless.
  virtual void Resume() = 0;
  // Ends the call; on_done follows with kCancelled (or with what came first). Safe at any time,
  // from inside an event too, and more than once.
  virtual void Cancel() = 0;
};

// What a reader wants after a message.
enum class Flow : uint8_t {
  kContinue,  // read the next one
  kPause,     // read no more until Resume: the peer is slowed down by HTTP/2 flow control
};

template <class Response>
struct ClientStreamEvents {
  // One message, in order. It may be moved from.
  std::function<Flow(Response& message)> on_message;
  // The last event, exactly once: Ok after a complete stream.
  std::function<void(const absl::Status& status)> on_done;
};

// The answer of a unary call; called exactly once.
template <class Response>
using UnaryDone = std::function<void(absl::StatusOr<Response>)>;

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_STREAM_CLIENT_CALL_H_

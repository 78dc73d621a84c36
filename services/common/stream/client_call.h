#ifndef TESSERA_SERVICES_COMMON_STREAM_CLIENT_CALL_H_
#define TESSERA_SERVICES_COMMON_STREAM_CLIENT_CALL_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

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

// Stands for a call that is still being started: events may come before the function that starts it
// has returned the call, and a prompt may have to be encoded first. Resume and Cancel are kept
// until Set. Threading: any thread.
class PendingCall final : public ClientCall {
 public:
  // Once.
  void Set(std::shared_ptr<ClientCall> call) ABSL_LOCKS_EXCLUDED(mutex_) {
    bool resume = false;
    bool cancel = false;
    {
      absl::MutexLock lock(&mutex_);
      call_ = call;
      resume = resume_wanted_;
      cancel = cancel_wanted_;
    }
    if (cancel) {
      call->Cancel();
    } else if (resume) {
      call->Resume();
    }
  }

  void Resume() override ABSL_LOCKS_EXCLUDED(mutex_) {
    if (std::shared_ptr<ClientCall> call = CallOrNote(resume_wanted_)) call->Resume();
  }
  void Cancel() override ABSL_LOCKS_EXCLUDED(mutex_) {
    if (std::shared_ptr<ClientCall> call = CallOrNote(cancel_wanted_)) call->Cancel();
  }
  // Whether Cancel has been called: then starting the call is needless.
  bool cancelled() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return cancel_wanted_;
  }

 private:
  std::shared_ptr<ClientCall> CallOrNote(bool& wanted) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    wanted = true;
    return call_;
  }

  mutable absl::Mutex mutex_;
  std::shared_ptr<ClientCall> call_ ABSL_GUARDED_BY(mutex_);
  bool resume_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancel_wanted_ ABSL_GUARDED_BY(mutex_) = false;
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

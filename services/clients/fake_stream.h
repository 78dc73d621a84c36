#ifndef TESSERA_SERVICES_CLIENTS_FAKE_STREAM_H_
#define TESSERA_SERVICES_CLIENTS_FAKE_STREAM_H_

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "services/common/stream/client_call.h"

namespace tessera::services {

// A call of a fake client, seen from the side of the fake server: a test sends messages and a
// status in it, and sees whether the caller paused or cancelled. Events are delivered on the thread
// that calls Send, Finish, Resume or Cancel, one at a time, as gRPC would. Threading: any thread.
template <class Response>
class FakeStream final : public ClientCall {
 public:
  explicit FakeStream(ClientStreamEvents<Response> events) : events_(std::move(events)) {}

  void Send(Response message) {
    {
      absl::MutexLock lock(&mutex_);
      if (status_.has_value()) return;
      queue_.push_back(std::move(message));
    }
    Deliver();
  }

  void Finish(absl::Status status) {
    {
      absl::MutexLock lock(&mutex_);
      if (status_.has_value()) return;
      status_ = std::move(status);
    }
    Deliver();
  }

  void Resume() override {
    {
      absl::MutexLock lock(&mutex_);
      paused_ = false;
      resumed_ = true;
    }
    Deliver();
  }

  void Cancel() override {
    {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
      queue_.clear();
      paused_ = false;
      if (!status_.has_value()) status_ = absl::CancelledError("CANCELLED");
    }
    Deliver();
  }

  bool cancelled() const {
    absl::MutexLock lock(&mutex_);
    return cancelled_;
  }
  bool paused() const {
    absl::MutexLock lock(&mutex_);
    return paused_;
  }
  bool done() const {
    absl::MutexLock lock(&mutex_);
    return done_;
  }
  bool AwaitCancelled(absl::Duration timeout) const {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&cancelled_), timeout);
  }
  bool AwaitPaused(absl::Duration timeout) const {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&paused_), timeout);
  }

 private:
  // One thread delivers at a time; a call from inside an event leaves the work to the outer one.
  void Deliver() {
    mutex_.Lock();
    if (delivering_) {
      mutex_.Unlock();
      return;
    }
    delivering_ = true;
    while (!done_) {
      if (!queue_.empty() && !paused_) {
        Response message = std::move(queue_.front());
        queue_.pop_front();
        resumed_ = false;
        mutex_.Unlock();
        const Flow flow = events_.on_message(message);
        mutex_.Lock();
        if (flow == Flow::kPause && !resumed_ && !cancelled_) paused_ = true;
      } else if (queue_.empty() && status_.has_value()) {
        done_ = true;
        const absl::Status status = *status_;
        const ClientStreamEvents<Response> events = std::exchange(events_, {});
        mutex_.Unlock();
        events.on_done(status);
        mutex_.Lock();
      } else {
        break;
      }
    }
    delivering_ = false;
    mutex_.Unlock();
  }

  mutable absl::Mutex mutex_;
  ClientStreamEvents<Response> events_;  // used by the delivering thread only
  std::deque<Response> queue_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mutex_);
  bool delivering_ ABSL_GUARDED_BY(mutex_) = false;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool resumed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_CLIENTS_FAKE_STREAM_H_

#ifndef TESSERA_SERVICES_COMMON_STREAM_SERVER_STREAM_H_
#define TESSERA_SERVICES_COMMON_STREAM_SERVER_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "services/common/status_map.h"

// The answering half of a server-streaming call. The rules of gRPC's callback interface are kept
// here, once: one write in flight; a message lives until its write is done; Finish exactly once,
// also when cancelled; no blocking; deletion only after OnDone. No service subclasses a reactor.

namespace tessera::services {

// How far a writer may run ahead of its reader.
struct StreamLimits {
  // Above either, Push says kBehind: stop producing until on_writable.
  size_t messages_high = 32;
  size_t bytes_high = size_t{256} << 10;
  // Above either, the stream is cut with kResourceExhausted: for producers that cannot stop.
  size_t messages_max = 1024;
  size_t bytes_max = size_t{4} << 20;
  // A reader that stays behind for this long is cut as well.
  absl::Duration behind_max = absl::Seconds(30);
  // A cut reader may take this long to fetch its status; then the call is reset.
  absl::Duration cut_grace = absl::Seconds(5);
};
// Messages are merged while waiting until they have this size.
inline constexpr size_t kMergedMessageBytesMax = size_t{16} << 10;

enum class PushResult : uint8_t {
  kOk,      // taken
  kBehind,  // taken; the reader is slow, pause until on_writable
  kClosed,  // dropped: the caller has gone, the stream was cut, or Finish was called
};

// How a call ended, for counters.
struct StreamOutcome {
  absl::Status status;      // what the caller was or would have been told
  bool cancelled = false;   // the caller went away or its deadline passed
  bool reader_cut = false;  // ended because the reader was too slow
};

template <class Response>
struct ServerStreamEvents {
  // The call ended from outside: cancelled, deadline passed, connection lost, or the reader stayed
  // behind too long. At most once. The stream finishes itself; stop the work.
  std::function<void()> on_cancel;
  // After kBehind: the queue has run down, go on.
  std::function<void()> on_writable;
  // The last event: the call is over and its context is gone.
  std::function<void(const StreamOutcome&)> on_done;
  // Tries to add `next` to `last`, a message that still waits; false leaves both as they were.
  // Called under the stream's lock: it must be pure. Null: never merged.
  bool (*merge)(Response& last, Response& next) = nullptr;
};

// A bounded stream of messages to one caller. In a handler:
//
//   auto stream = ServerStream<GenerateResponse>::Start(context, {}, {.on_cancel = ...});
//   ... keep the pointer; Push from any thread ...
//   return stream->reactor();
//
// Ownership: shared. The call itself holds one reference until it is over, so the owner may drop
// his at any time after Finish; the events (and what they capture) are released when it is over.
// Threading: Push, Finish and the readers from any thread; pushes of several threads are written
// in the order in which they took the lock. No event is called from inside Push or Finish, but
// on_writable may run in another thread before the Push that said kBehind has returned: return from
// the producing loop at once, touching nothing.
// Cost: Push is one lock, one size computation and, if the writer is idle, the start of a write.
template <class Response>
class ServerStream final : private grpc::ServerWriteReactor<Response>,
                           public std::enable_shared_from_this<ServerStream<Response>> {
 public:
  using Events = ServerStreamEvents<Response>;

  static std::shared_ptr<ServerStream> Start(grpc::CallbackServerContext* context,
                                             const StreamLimits& limits, Events events) {
    std::shared_ptr<ServerStream> stream(new ServerStream(context, limits, std::move(events)));
    stream->self_ = stream;
    return stream;
  }

  // What the handler returns to gRPC.
  grpc::ServerWriteReactor<Response>* reactor() { return this; }

  // Sends what is in the context's initial metadata now instead of with the first message. Before
  // the first Push.
  void SendInitialMetadata() { this->StartSendInitialMetadata(); }

  PushResult Push(Response message) ABSL_LOCKS_EXCLUDED(mutex_) {
    const size_t bytes = message.ByteSizeLong();
    {
      absl::MutexLock lock(&mutex_);
      if (closing_) return PushResult::kClosed;
      if (!writing_) {
        writing_ = true;
        in_flight_ = std::move(message);
      } else {
        Enqueue(std::move(message), bytes);
        if (queue_.size() > limits_.messages_max || queued_bytes_ > limits_.bytes_max) {
          Cut("it is behind by ");
          return PushResult::kClosed;
        }
        if (behind_ || queue_.size() > limits_.messages_high ||
            queued_bytes_ > limits_.bytes_high) {
          MarkBehind();
          return PushResult::kBehind;
        }
        return PushResult::kOk;
      }
    }
    // Outside the lock: only this thread can be here, since writing_ is set.
    this->StartWrite(&in_flight_);
    return PushResult::kOk;
  }

  // Ends the stream with `status` once everything pushed has been written. Only the first call
  // counts, and none after the caller has gone.
  void Finish(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_) {
    bool finish_now = false;
    {
      absl::MutexLock lock(&mutex_);
      if (closing_) return;
      closing_ = true;
      outcome_.status = std::move(status);
      finish_now = !writing_ && TakeFinish();
    }
    if (finish_now) CallFinish();
  }

  // Whether nothing that is pushed can reach the caller any more.
  bool closed() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return closing_;
  }
  // Bytes that wait, without the message in flight.
  size_t queued_bytes() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return queued_bytes_;
  }

 private:
  struct Waiting {
    Response message;
    size_t bytes;
  };

  ServerStream(grpc::CallbackServerContext* context, const StreamLimits& limits, Events events)
      : limits_(limits), events_(std::move(events)), context_(context) {}

  void Enqueue(Response message, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    queued_bytes_ += bytes;
    if (events_.merge != nullptr && !queue_.empty() &&
        queue_.back().bytes + bytes <= kMergedMessageBytesMax &&
        events_.merge(queue_.back().message, message)) {
      queue_.back().bytes += bytes;
      return;
    }
    queue_.push_back({std::move(message), bytes});
  }

  // The reader is slow: give it behind_max to catch up.
  void MarkBehind() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (behind_) return;
    behind_ = true;
    const uint64_t round = ++behind_round_;
    SetAlarm(behind_alarm_, limits_.behind_max, [weak = this->weak_from_this(), round] {
      if (auto stream = weak.lock()) stream->OnBehindTooLong(round);
    });
  }

  void OnBehindTooLong(uint64_t round) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::function<void()> on_cancel;
    {
      absl::MutexLock lock(&mutex_);
      if (closing_ || !behind_ || round != behind_round_) return;
      Cut("for too long it has been behind by ");
      on_cancel = TakeOnCancel();
    }
    if (on_cancel) on_cancel();
  }

  // Drops what waits and ends the stream. A write is in flight (else nothing would wait); when the
  // reader fetches it the status follows, and if it does not, the call is reset after cut_grace.
  void Cut(std::string_view how) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    closing_ = true;
    outcome_.reader_cut = true;
    outcome_.status = WithReason(
        absl::ResourceExhaustedError(absl::StrCat(
            "the reader of this stream is too slow: ", absl::string_view(how.data(), how.size()),
            queue_.size(), " messages, ", queued_bytes_, " bytes; read faster")),
        "SLOW_READER");
    DropQueue();
    SetAlarm(cut_alarm_, limits_.cut_grace, [weak = this->weak_from_this()] {
      if (auto stream = weak.lock()) stream->Reset();
    });
  }

  void Reset() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }

  template <class F>
  static void SetAlarm(std::unique_ptr<grpc::Alarm>& alarm, absl::Duration after, F on_expiry) {
    // A new one each time: an alarm that is pending, or whose callback runs, cannot be set again.
    alarm = std::make_unique<grpc::Alarm>();
    alarm->Set(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                            gpr_time_from_nanos(absl::ToInt64Nanoseconds(after), GPR_TIMESPAN)),
               [on_expiry = std::move(on_expiry)](bool expired) {
                 if (expired) on_expiry();
               });
  }

  void DropQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    queue_.clear();
    queued_bytes_ = 0;
  }

  std::function<void()> TakeOnCancel() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::exchange(events_.on_cancel, nullptr);
  }

  // True for exactly one caller, who must then call CallFinish.
  bool TakeFinish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !std::exchange(finish_called_, true);
  }

  void CallFinish() ABSL_LOCKS_EXCLUDED(mutex_) {
    grpc::Status status;
    {
      absl::MutexLock lock(&mutex_);
      status = ToGrpcStatus(outcome_.status);
    }
    grpc::ServerWriteReactor<Response>::Finish(std::move(status));
  }

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    enum class Next { kNothing, kWrite, kWriteAndFinish, kFinish } next = Next::kNothing;
    std::function<void()> notify;
    grpc::Status status;
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
      if (!ok) {
        CloseAsCancelled();
        notify = TakeOnCancel();
      } else if (!queue_.empty()) {
        in_flight_ = std::move(queue_.front().message);
        queued_bytes_ -= queue_.front().bytes;
        queue_.pop_front();
        writing_ = true;
        next = Next::kWrite;
        if (closing_ && queue_.empty() && TakeFinish()) {
          // The last message and the status leave together.
          next = Next::kWriteAndFinish;
          status = ToGrpcStatus(outcome_.status);
        }
        if (behind_ && queue_.size() <= limits_.messages_high / 4 &&
            queued_bytes_ <= limits_.bytes_high / 4) {
          behind_ = false;
          if (!closing_) notify = events_.on_writable;
        }
      }
      if (!writing_ && closing_ && TakeFinish()) next = Next::kFinish;
    }
    if (next == Next::kWrite) this->StartWrite(&in_flight_);
    if (next == Next::kWriteAndFinish) {
      this->StartWriteAndFinish(&in_flight_, grpc::WriteOptions(), std::move(status));
    }
    if (next == Next::kFinish) CallFinish();
    if (notify) notify();
  }

  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_) {
    std::function<void()> on_cancel;
    bool finish_now = false;
    {
      absl::MutexLock lock(&mutex_);
      CloseAsCancelled();
      on_cancel = TakeOnCancel();
      // A write in flight ends by itself now, and OnWriteDone finishes.
      finish_now = !writing_ && TakeFinish();
    }
    if (finish_now) CallFinish();
    if (on_cancel) on_cancel();
  }

  void CloseAsCancelled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!outcome_.reader_cut) {
      outcome_.cancelled = true;
      if (!closing_) {
        outcome_.status = DeadlinePassed()
                              ? absl::DeadlineExceededError("the caller's deadline has passed")
                              : absl::CancelledError("the caller has gone");
      }
    }
    closing_ = true;
    DropQueue();
  }

  bool DeadlinePassed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (context_ == nullptr) return false;
    // The wire rounds deadlines up (by 100 ms in 30 s), so the caller's reset comes before our own
    // clock says so. The difference shows in counters only.
    constexpr int64_t kSlackMs = 120;
    const gpr_timespec deadline = context_->raw_deadline();
    const gpr_timespec soon =
        gpr_time_add(gpr_now(deadline.clock_type), gpr_time_from_millis(kSlackMs, GPR_TIMESPAN));
    return gpr_time_cmp(deadline, soon) <= 0;
  }

  void OnDone() override ABSL_LOCKS_EXCLUDED(mutex_) {
    Events events;
    std::shared_ptr<ServerStream> self;
    StreamOutcome outcome;
    {
      absl::MutexLock lock(&mutex_);
      context_ = nullptr;
      closing_ = true;
      events = std::exchange(events_, {});
      outcome = outcome_;
      self = std::move(self_);
    }
    if (events.on_done) events.on_done(outcome);
  }

  const StreamLimits limits_;
  mutable absl::Mutex mutex_;
  Events events_ ABSL_GUARDED_BY(mutex_);
  grpc::CallbackServerContext* context_ ABSL_GUARDED_BY(mutex_);  // null once the call is over
  std::shared_ptr<ServerStream> self_ ABSL_GUARDED_BY(mutex_);
  std::deque<Waiting> queue_ ABSL_GUARDED_BY(mutex_);  // not empty only while writing_
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  Response in_flight_;  // owned by whoever set writing_, then by gRPC until OnWriteDone
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;        // no more pushes; outcome_.status is final
  bool finish_called_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC has been told
  bool behind_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t behind_round_ ABSL_GUARDED_BY(mutex_) = 0;
  StreamOutcome outcome_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Alarm> behind_alarm_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Alarm> cut_alarm_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_STREAM_SERVER_STREAM_H_

#ifndef TESSERA_SERVICES_COMMON_STREAM_CLIENT_STREAM_H_
#define TESSERA_SERVICES_COMMON_STREAM_CLIENT_STREAM_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"
#include "services/common/call_context.h"
#include "services/common/status_map.h"
#include "services/common/stream/client_call.h"

namespace tessera::services {

// The asking half of a server-streaming call to the hop below, with gRPC's rules kept: one read in
// flight, a hold as long as reads may still be started, deletion only after OnDone. Reading stops
// while the reader says kPause, so nothing piles up here.
//
// Ownership: shared; the call holds one reference until on_done has returned, then the events are
// released. Threading: events come one at a time, from gRPC's threads, and must not block.
template <class Request, class Response>
class ClientStream final : public ClientCall, private grpc::ClientReadReactor<Response> {
 public:
  using Events = ClientStreamEvents<Response>;
  // Starts the stub's method: [&](auto* c, auto* q, auto* r) { stub->async()->Method(c, q, r); }
  using Begin = absl::FunctionRef<void(grpc::ClientContext*, const Request*,
                                       grpc::ClientReadReactor<Response>*)>;

  static std::shared_ptr<ClientCall> Start(const CallContext& context, Request request,
                                           Events events, Begin begin) {
    std::shared_ptr<ClientStream> stream(new ClientStream(std::move(request), std::move(events)));
    stream->self_ = stream;
    ApplyCallContext(context, stream->context_);
    begin(&stream->context_, &stream->request_, stream.get());
    stream->AddHold();
    stream->StartRead(&stream->message_);
    stream->StartCall();
    return stream;
  }

  void Resume() override ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (state_ != State::kPaused) {
        resume_pending_ = true;
        return;
      }
      state_ = State::kReading;
    }
    this->StartRead(&message_);
  }

  void Cancel() override ABSL_LOCKS_EXCLUDED(mutex_) {
    context_.TryCancel();
    {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
      // No read is in flight to bring the end: let go of the hold here.
      if (state_ != State::kPaused) return;
      state_ = State::kEnded;
    }
    this->RemoveHold();
  }

 private:
  enum class State {
    kReading,  // a read is in flight, or its reaction runs
    kPaused,   // none is; Resume or Cancel goes on
    kEnded,    // the hold has been let go
  };

  ClientStream(Request request, Events events)
      : request_(std::move(request)), events_(std::move(events)) {}

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    bool read_on = ok;
    if (ok) {
      {
        absl::MutexLock lock(&mutex_);
        resume_pending_ = false;
      }
      const Flow flow = events_.on_message(message_);
      message_.Clear();
      absl::MutexLock lock(&mutex_);
      if (cancelled_) {
        read_on = false;
      } else if (flow == Flow::kPause && !resume_pending_) {
        state_ = State::kPaused;
        return;
      }
    }
    if (read_on) {
      this->StartRead(&message_);
      return;
    }
    {
      absl::MutexLock lock(&mutex_);
      state_ = State::kEnded;
    }
    this->RemoveHold();
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<ClientStream> self = std::move(self_);
    const Events events = std::exchange(events_, {});
    if (events.on_done) events.on_done(FromGrpcStatus(status));
  }

  Request request_;
  grpc::ClientContext context_;
  Response message_;  // gRPC's while a read is in flight
  Events events_;     // used by reactions only, which gRPC runs one at a time
  std::shared_ptr<ClientStream> self_;
  absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kReading;
  bool resume_pending_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_STREAM_CLIENT_STREAM_H_

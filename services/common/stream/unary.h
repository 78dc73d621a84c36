#ifndef TESSERA_SERVICES_COMMON_STREAM_UNARY_H_
#define TESSERA_SERVICES_COMMON_STREAM_UNARY_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "services/common/call_context.h"
#include "services/common/status_map.h"
#include "services/common/stream/client_call.h"

namespace tessera::services {

// Answers a unary call at once: for handlers that need no waiting.
inline grpc::ServerUnaryReactor* Reply(grpc::CallbackServerContext* context,
                                       const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// A unary call that is answered later, from any thread:
//
//   auto reply = ServerReply::Start({.on_cancel = ..., .on_done = ...});
//   ... fill *response, then reply->Finish(status) ...
//   return reply->reactor();
//
// The request and response of the handler live until Finish; after it, or after on_cancel, leave
// them alone. Ownership: shared, as ServerStream.
class ServerReply final : private grpc::ServerUnaryReactor {
 public:
  struct Events {
    // The caller has gone. At most once; Finish must still be called, as always.
    std::function<void()> on_cancel;
    // The call is over.
    std::function<void()> on_done;
  };

  static std::shared_ptr<ServerReply> Start(Events events) {
    std::shared_ptr<ServerReply> reply(new ServerReply(std::move(events)));
    reply->self_ = reply;
    return reply;
  }

  grpc::ServerUnaryReactor* reactor() { return this; }

  // Only the first call counts. Any thread.
  void Finish(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (std::exchange(finished_, true)) return;
    }
    grpc::ServerUnaryReactor::Finish(ToGrpcStatus(status));
  }

 private:
  explicit ServerReply(Events events) : events_(std::move(events)) {}

  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_) {
    std::function<void()> on_cancel;
    {
      absl::MutexLock lock(&mutex_);
      on_cancel = std::exchange(events_.on_cancel, nullptr);
    }
    if (on_cancel) on_cancel();
  }

  void OnDone() override ABSL_LOCKS_EXCLUDED(mutex_) {
    Events events;
    std::shared_ptr<ServerReply> self;
    {
      absl::MutexLock lock(&mutex_);
      events = std::exchange(events_, {});
      self = std::move(self_);
    }
    if (events.on_done) events.on_done();
  }

  absl::Mutex mutex_;
  Events events_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ServerReply> self_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

// Makes a unary call to the hop below; `done` is called exactly once, from a thread of gRPC's, with
// the answer or the status. The returned handle can cancel it (Resume does nothing).
template <class Request, class Response>
class UnaryCall final : public ClientCall {
 public:
  // [&](auto* c, auto* q, auto* a, auto f) { stub->async()->Method(c, q, a, std::move(f)); }
  using Begin = absl::FunctionRef<void(grpc::ClientContext*, const Request*, Response*,
                                       std::function<void(grpc::Status)>)>;

  static std::shared_ptr<ClientCall> Start(const CallContext& context, Request request,
                                           UnaryDone<Response> done, Begin begin) {
    auto call = std::make_shared<UnaryCall>(std::move(request));
    ApplyCallContext(context, call->context_);
    begin(&call->context_, &call->request_, &call->response_,
          [call, done = std::move(done)](const grpc::Status& status) {
            if (status.ok()) {
              done(std::move(call->response_));
            } else {
              done(FromGrpcStatus(status));
            }
          });
    return call;
  }

  explicit UnaryCall(Request request) : request_(std::move(request)) {}
  void Resume() override {}
  void Cancel() override { context_.TryCancel(); }

 private:
  Request request_;
  Response response_;
  grpc::ClientContext context_;
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_STREAM_UNARY_H_

#include "services/clients/health_watch.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/alarm.h"
#include "services/clients/channel.h"
#include "services/common/call_context.h"
#include "services/common/stream/client_stream.h"

namespace tessera::services {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Shared by the handle, the running call and the alarm between two calls; lives on, silent, until
// the last of them has gone.
class Follower final : public std::enable_shared_from_this<Follower> {
 public:
  Follower(std::shared_ptr<grpc::Channel> channel, std::string service, HealthChanged changed)
      : stub_(grpc::health::v1::Health::NewStub(std::move(channel))),
        service_(std::move(service)),
        changed_(std::move(changed)) {}

  void Begin() ABSL_LOCKS_EXCLUDED(mutex_) {
    HealthCheckRequest request;
    request.set_service(service_);
    // Started outside the lock: its events may come before Start returns.
    std::shared_ptr<ClientCall> call = ClientStream<HealthCheckRequest, HealthCheckResponse>::Start(
        {}, std::move(request),
        {.on_message =
             [self = shared_from_this()](HealthCheckResponse& response) {
               self->Tell(response.status() == HealthCheckResponse::SERVING, /*heard=*/true);
               return Flow::kContinue;
             },
         .on_done =
             [self = shared_from_this()](const absl::Status&) {
               self->Tell(false, /*heard=*/false);
               self->BeginLater();
             }},
        [this](auto* c, auto* q, auto* r) { stub_->async()->Watch(c, q, r); });
    bool stopped = false;
    {
      absl::MutexLock lock(&mutex_);
      stopped = stopped_;
      if (!stopped) call_ = call;
    }
    if (stopped) call->Cancel();
  }

  // Returns when no callback runs any more.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<ClientCall> call;
    std::unique_ptr<grpc::Alarm> alarm;  // its destruction cancels it
    {
      absl::MutexLock lock(&mutex_);
      stopped_ = true;
      call = std::move(call_);
      alarm = std::move(alarm_);
    }
    {
      absl::MutexLock lock(&tell_mutex_);
      changed_ = nullptr;
    }
    if (call != nullptr) call->Cancel();
  }

 private:
  void Tell(bool serving, bool heard) ABSL_LOCKS_EXCLUDED(mutex_, tell_mutex_) {
    if (heard) {
      absl::MutexLock lock(&mutex_);
      backoff_ = kReconnectBackoffMin;
    }
    absl::MutexLock lock(&tell_mutex_);
    if (changed_ == nullptr || (told_ && serving == serving_)) return;
    told_ = true;
    serving_ = serving;
    changed_(serving);
  }

  void BeginLater() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    const absl::Duration wait = backoff_;
    backoff_ = std::min(backoff_ * 2, kReconnectBackoffMax);
    // A new one each time: this may run while the callback of the last one does.
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                             gpr_time_from_millis(absl::ToInt64Milliseconds(wait), GPR_TIMESPAN)),
                [self = shared_from_this()](bool expired) {
                  if (expired) self->Begin();
                });
  }

  const std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
  const std::string service_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<ClientCall> call_ ABSL_GUARDED_BY(mutex_);
  absl::Duration backoff_ ABSL_GUARDED_BY(mutex_) = kReconnectBackoffMin;
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex tell_mutex_;  // held while the callback runs
  HealthChanged changed_ ABSL_GUARDED_BY(tell_mutex_);
  bool told_ ABSL_GUARDED_BY(tell_mutex_) = false;
  bool serving_ ABSL_GUARDED_BY(tell_mutex_) = false;
};

class Handle final : public HealthWatch {
 public:
  explicit Handle(std::shared_ptr<Follower> follower) : follower_(std::move(follower)) {}
  ~Handle() override { follower_->Stop(); }

 private:
  const std::shared_ptr<Follower> follower_;
};

}  // namespace

std::unique_ptr<HealthWatch> WatchHealth(std::shared_ptr<grpc::Channel> channel,
                                         std::string service, HealthChanged changed) {
  auto follower =
      std::make_shared<Follower>(std::move(channel), std::move(service), std::move(changed));
  follower->Begin();
  return std::make_unique<Handle>(std::move(follower));
}

}  // namespace tessera::services

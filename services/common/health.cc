#include "services/common/health.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "services/common/stream/server_stream.h"
#include "services/common/stream/unary.h"

namespace tessera::services {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using WatchStream = ServerStream<HealthCheckResponse>;

HealthCheckResponse Answer(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  return response;
}

// Only the newest state matters to a slow watcher.
bool KeepNewest(HealthCheckResponse& last, HealthCheckResponse& next) {
  last = next;
  return true;
}

}  // namespace

class Health::Impl final : public grpc::health::v1::Health::CallbackService {
 public:
  Impl() { serving_[""] = true; }

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const HealthCheckRequest* request,
                                  HealthCheckResponse* response) override {
    {
      absl::MutexLock lock(&mutex_);
      const auto found = serving_.find(request->service());
      if (found != serving_.end()) {
        response->set_status(StatusOf(found->second));
        return Reply(context, absl::OkStatus());
      }
    }
    return Reply(context, absl::NotFoundError("no service of this name is here"));
  }

  grpc::ServerWriteReactor<HealthCheckResponse>* Watch(grpc::CallbackServerContext* context,
                                                       const HealthCheckRequest* request) override {
    const std::string name = request->service();
    absl::MutexLock lock(&mutex_);
    const uint64_t id = next_watcher_++;
    std::shared_ptr<WatchStream> stream =
        WatchStream::Start(context, {},
                           // Never before this handler has returned.
                           {.on_done =
                                [this, id](const StreamOutcome&) {
                                  absl::MutexLock lock(&mutex_);
                                  watchers_.erase(id);
                                },
                            .merge = &KeepNewest});
    if (draining_) {
      stream->Finish(absl::UnavailableError("the server is draining"));
    } else if (watchers_.size() >= kHealthWatchersMax) {
      stream->Finish(absl::ResourceExhaustedError(
          absl::StrCat("there are ", kHealthWatchersMax, " watchers, the limit")));
    } else {
      const auto found = serving_.find(name);
      stream->Push(Answer(found == serving_.end() ? HealthCheckResponse::SERVICE_UNKNOWN
                                                  : StatusOf(found->second)));
      watchers_.emplace(id, Watcher{name, stream});
    }
    return stream->reactor();
  }

  void Set(const std::string& name, bool serving) {
    absl::MutexLock lock(&mutex_);
    if (draining_) return;
    const auto [entry, is_new] = serving_.try_emplace(name, serving);
    if (!is_new && std::exchange(entry->second, serving) == serving) return;
    Tell(name, serving);
  }

  bool Serving(const std::string& name) const {
    absl::MutexLock lock(&mutex_);
    const auto found = serving_.find(name);
    return found != serving_.end() && found->second;
  }

  void Drain() {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(draining_, true)) return;
    for (auto& [name, serving] : serving_) {
      if (std::exchange(serving, false)) Tell(name, false);
    }
    for (const auto& [id, watcher] : watchers_) {
      watcher.stream->Finish(absl::UnavailableError("the server is draining"));
    }
  }

 private:
  struct Watcher {
    std::string name;
    std::shared_ptr<WatchStream> stream;
  };

  static HealthCheckResponse::ServingStatus StatusOf(bool serving) {
    return serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
  }

  // Push never blocks and calls no event, so it is safe under the lock, which keeps the order.
  void Tell(const std::string& name, bool serving) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const auto& [id, watcher] : watchers_) {
      if (watcher.name == name) watcher.stream->Push(Answer(StatusOf(serving)));
    }
  }

  mutable absl::Mutex mutex_;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Watcher> watchers_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_watcher_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

Health::Health() : impl_(std::make_unique<Impl>()) {}
Health::~Health() = default;

void Health::Set(std::string_view name, bool serving) { impl_->Set(std::string(name), serving); }
bool Health::Serving(std::string_view name) const { return impl_->Serving(std::string(name)); }
void Health::Drain() { impl_->Drain(); }
grpc::Service* Health::service() { return impl_.get(); }

}  // namespace tessera::services

#ifndef TESSERA_SERVICES_CLIENTS_FAKE_HEALTH_H_
#define TESSERA_SERVICES_CLIENTS_FAKE_HEALTH_H_

#include <list>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "services/clients/health_watch.h"

namespace tessera::services {

// The health of a faked peer: tells its watchers at once. Threading: any thread.
class FakeHealth final {
 public:
  explicit FakeHealth(bool serving) : serving_(serving) {}

  void Set(bool serving) {
    absl::MutexLock lock(&mutex_);
    serving_ = serving;
    for (const HealthChanged& changed : watchers_) changed(serving);
  }

  std::unique_ptr<HealthWatch> Watch(HealthChanged changed) {
    absl::MutexLock lock(&mutex_);
    changed(serving_);
    watchers_.push_back(std::move(changed));
    return std::make_unique<Watcher>(*this, std::prev(watchers_.end()));
  }

 private:
  class Watcher final : public HealthWatch {
   public:
    Watcher(FakeHealth& health, std::list<HealthChanged>::iterator self)
        : health_(health), self_(self) {}
    ~Watcher() override {
      absl::MutexLock lock(&health_.mutex_);
      health_.watchers_.erase(self_);
    }

   private:
    FakeHealth& health_;
    std::list<HealthChanged>::iterator self_;
  };

  absl::Mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_);
  std::list<HealthChanged> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_CLIENTS_FAKE_HEALTH_H_

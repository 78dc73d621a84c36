#ifndef TESSERA_ENGINE_SERVER_ENGINE_STATE_H_
#define TESSERA_ENGINE_SERVER_ENGINE_STATE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/executor/executor.h"

namespace tessera::engine {

enum class WorkerState : uint8_t { kLoading, kReady, kRecovering };

// Whether the engine can serve: what the worker is at, and whether an operator drains it. The one
// place that tells the executor what to refuse and health what to say, so that the two agree.
// Threading: any thread.
class EngineState final {
 public:
  // `on_serving` hears of every change of health.
  EngineState(Executor& executor, std::function<void(bool serving)> on_serving)
      : executor_(executor), on_serving_(std::move(on_serving)) {}

  void SetWorker(WorkerState worker) {
    absl::MutexLock lock(&mutex_);
    worker_ = worker;
    Publish();
  }
  void Drain() {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    Publish();
  }
  WorkerState worker() const {
    absl::MutexLock lock(&mutex_);
    return worker_;
  }
  bool draining() const {
    absl::MutexLock lock(&mutex_);
    return draining_;
  }

 private:
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    absl::Status refusal;
    if (draining_) {
      refusal = absl::UnavailableError("the engine is draining; send it to another one");
    } else if (worker_ == WorkerState::kLoading) {
      refusal = absl::UnavailableError("the model is loading; try again");
    } else if (worker_ == WorkerState::kRecovering) {
      refusal = absl::UnavailableError("a worker was lost and is being restarted; try again");
    }
    const bool serving = refusal.ok();
    executor_.Refuse(std::move(refusal));
    on_serving_(serving);
  }

  Executor& executor_;
  const std::function<void(bool)> on_serving_;
  mutable absl::Mutex mutex_;
  WorkerState worker_ ABSL_GUARDED_BY(mutex_) = WorkerState::kLoading;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SERVER_ENGINE_STATE_H_

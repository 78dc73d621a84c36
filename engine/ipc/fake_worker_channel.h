#ifndef TESSERA_ENGINE_IPC_FAKE_WORKER_CHANNEL_H_
#define TESSERA_ENGINE_IPC_FAKE_WORKER_CHANNEL_H_

#include <deque>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/ipc/worker_channel.h"

namespace tessera::engine {

// A worker in this process, for tests: what it answers is a function, and the test decides when.
// Ownership: borrows the events.  Threading: any thread.
class FakeWorkerChannel final : public WorkerChannel {
 public:
  using Run = std::function<StepResult(const StepPlan&)>;
  FakeWorkerChannel(WorkerEvents& events, Run run) : events_(events), run_(std::move(run)) {}

  void StartLoad(const WorkerLoad& load) override {
    events_.OnLoadProgress({.phase = "read", .bytes_done = 1, .bytes_total = 1});
    load_ = load;
    events_.OnLoaded(absl::OkStatus(), {});
  }
  void Send(const StepPlan& plan) override {
    absl::MutexLock lock(&mutex_);
    if (!dead_) plans_.push_back(plan);
  }
  void Close() override {}

  // Answers the oldest plan. False: there is none.
  bool AnswerOne() {
    StepPlan plan;
    {
      absl::MutexLock lock(&mutex_);
      if (dead_ || plans_.empty()) return false;
      plan = std::move(plans_.front());
      plans_.pop_front();
    }
    events_.OnResult(run_(plan));
    return true;
  }
  // Waits for a plan, then answers it.
  void AwaitAndAnswerOne() {
    {
      absl::MutexLock lock(&mutex_);
      const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !plans_.empty(); };
      mutex_.Await(absl::Condition(&some));
    }
    AnswerOne();
  }
  void Die(const absl::Status& reason) {
    {
      absl::MutexLock lock(&mutex_);
      dead_ = true;
      plans_.clear();
    }
    events_.OnLost(reason);
  }
  const WorkerLoad& load() const { return load_; }

 private:
  WorkerEvents& events_;
  Run run_;
  WorkerLoad load_;
  absl::Mutex mutex_;
  std::deque<StepPlan> plans_ ABSL_GUARDED_BY(mutex_);
  bool dead_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_IPC_FAKE_WORKER_CHANNEL_H_

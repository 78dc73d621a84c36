#include "services/common/work_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/status_map.h"

namespace tessera::services {

WorkPool::WorkPool(size_t threads, size_t tasks_max) : tasks_max_(tasks_max) {
  threads_.reserve(threads);
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

WorkPool::~WorkPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status WorkPool::Post(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (tasks_.size() >= tasks_max_) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          tasks_.size(), " long prompts are waiting, the limit; try again")),
                      "WORK_QUEUE_FULL");
  }
  tasks_.push_back(std::move(task));
  return absl::OkStatus();
}

void WorkPool::Work() {
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &WorkPool::HasWork));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace tessera::services

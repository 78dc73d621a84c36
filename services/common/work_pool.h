#ifndef TESSERA_SERVICES_COMMON_WORK_POOL_H_
#define TESSERA_SERVICES_COMMON_WORK_POOL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace tessera::services {

// Threads for work that would hold up gRPC's own: encoding a long prompt takes a second, and two
// such on gRPC's two threads would stop every stream of the process.
// Threading: Post from any thread. The destructor runs what has been posted, then joins.
class WorkPool final {
 public:
  // `tasks_max` may wait besides those that run.
  WorkPool(size_t threads, size_t tasks_max);
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // Errors: kResourceExhausted when tasks_max tasks wait; `task` is dropped then.
  absl::Status Post(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !tasks_.empty() || stopping_;
  }

  const size_t tasks_max_;
  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_WORK_POOL_H_

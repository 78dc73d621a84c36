#ifndef TESSERA_ENGINE_DEVICE_CPU_THREAD_POOL_H_
#define TESSERA_ENGINE_DEVICE_CPU_THREAD_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace tessera::engine {

inline constexpr int kThreadsMax = 256;

// A fixed set of threads that run one function together. The parts of a step follow each other
// within microseconds, so a waiting thread looks for work for a short while before it sleeps.
//
// Threading: one thread owns the pool and calls Run; it takes part itself as thread 0.
// Errors: none. Cost: about a microsecond a Run while the threads are awake.
class ThreadPool {
 public:
  // `threads` counts the caller; 0 takes one a core.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls work(thread) once for each thread in [0, threads()) and returns when all have returned.
  void Run(absl::FunctionRef<void(int thread)> work);

  // The part of [0, count) that belongs to `thread`, in multiples of `grain` but for the last.
  struct Range {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  Range Part(uint32_t count, uint32_t grain, int thread) const;

 private:
  void Help(int thread);

  std::vector<std::thread> helpers_;
  const absl::FunctionRef<void(int)>* work_ = nullptr;  // of the current round
  std::atomic<uint64_t> round_{0};                      // counts Run
  std::atomic<int> running_{0};                         // helpers that have not returned
  std::atomic<bool> stopping_{false};
  std::atomic<int> sleeping_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_DEVICE_CPU_THREAD_POOL_H_

#include "engine/device/cpu/thread_pool.h"

#include <algorithm>

namespace tessera::engine {
namespace {

// How long a helper looks for work before it sleeps: a few times the gap between two parts of a
// step, so that it stays awake within one and costs nothing between requests.
constexpr int kSpinsMax = 20000;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

int CountOf(int threads) {
  if (threads <= 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(threads, 1, kThreadsMax);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const int count = CountOf(threads);
  helpers_.reserve(count - 1);
  for (int i = 1; i < count; ++i) helpers_.emplace_back([this, i] { Help(i); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    round_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::Run(absl::FunctionRef<void(int)> work) {
  if (helpers_.empty()) {
    work(0);
    return;
  }
  work_ = &work;
  running_.store(static_cast<int>(helpers_.size()), std::memory_order_relaxed);
  round_.fetch_add(1);  // publishes work_ and running_
  if (sleeping_.load() != 0) {
    // A helper counts itself as sleeping under the lock and looks at the round again before it
    // waits, so it either sees this round or hears the notification.
    { std::lock_guard<std::mutex> lock(mutex_); }
    wake_.notify_all();
  }
  work(0);
  while (running_.load(std::memory_order_acquire) != 0) Pause();
}

void ThreadPool::Help(int thread) {
  uint64_t seen = 0;
  for (;;) {
    int spins = 0;
    while (round_.load(std::memory_order_acquire) == seen) {
      if (++spins < kSpinsMax) {
        Pause();
        continue;
      }
      std::unique_lock<std::mutex> lock(mutex_);
      sleeping_.fetch_add(1);
      wake_.wait(lock, [&] { return round_.load() != seen; });
      sleeping_.fetch_sub(1);
    }
    if (stopping_.load()) return;
    ++seen;
    (*work_)(thread);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

ThreadPool::Range ThreadPool::Part(uint32_t count, uint32_t grain, int thread) const {
  const uint64_t pieces = (count + grain - 1) / grain;
  const uint64_t n = static_cast<uint64_t>(threads());
  const auto at = [&](uint64_t t) {
    return static_cast<uint32_t>(std::min<uint64_t>(count, pieces * t / n * grain));
  };
  return {at(thread), at(thread + 1)};
}

}  // namespace tessera::engine

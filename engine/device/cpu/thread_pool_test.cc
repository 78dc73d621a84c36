#include "engine/device/cpu/thread_pool.h"

#include <chrono>
#include <numeric>

#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

TEST(ThreadPool, EveryThreadRunsOnceARound) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.threads(), threads);
    std::vector<int> calls(threads, 0);
    for (int round = 1; round <= 2000; ++round) {
      pool.Run([&](int thread) { ++calls[thread]; });
      for (int count : calls) ASSERT_EQ(count, round);
      // Long enough for the helpers to fall asleep.
      if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

TEST(ThreadPool, PartsTileTheRangeInGrains) {
  ThreadPool pool(3);
  for (uint32_t count : {0u, 1u, 7u, 8u, 64u, 1001u}) {
    for (uint32_t grain : {1u, 4u, 32u}) {
      uint32_t next = 0;
      for (int thread = 0; thread < 3; ++thread) {
        const ThreadPool::Range part = pool.Part(count, grain, thread);
        EXPECT_EQ(part.begin, next);
        EXPECT_GE(part.end, part.begin);
        EXPECT_TRUE(part.end == count || part.end % grain == 0);
        next = part.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace tessera::engine

#include "services/common/work_pool.h"

#include <atomic>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace tessera::services {
namespace {

TEST(WorkPool, RunsEverythingPostedBeforeItEnds) {
  std::atomic<int> ran = 0;
  {
    WorkPool pool(3, 1000);
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(pool.Post([&] { ++ran; }).ok());
  }
  EXPECT_EQ(ran, 500);
}

TEST(WorkPool, IsFullAtItsLimit) {
  absl::Notification go;
  absl::Notification running;
  std::atomic<int> ran = 0;
  {
    WorkPool pool(1, 2);
    ASSERT_TRUE(pool.Post([&] {
                      running.Notify();
                      go.WaitForNotification();
                    })
                    .ok());
    running.WaitForNotification();
    EXPECT_TRUE(pool.Post([&] { ++ran; }).ok());
    EXPECT_TRUE(pool.Post([&] { ++ran; }).ok());
    EXPECT_EQ(pool.Post([&] { ++ran; }).code(), absl::StatusCode::kResourceExhausted);
    go.Notify();
  }
  EXPECT_EQ(ran, 2);
}

}  // namespace
}  // namespace tessera::services

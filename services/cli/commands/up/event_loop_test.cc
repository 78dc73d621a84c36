#include "services/cli/commands/up/event_loop.h"

#include <poll.h>
#include <unistd.h>

#include <vector>

#include "gtest/gtest.h"
#include "services/common/clock.h"

namespace tessera::cli {
namespace {

TEST(EventLoop, TimersComeInTheOrderOfTheirTimesAndOnlyOnce) {
  EventLoop loop(services::RealClock());
  std::vector<int> came;
  loop.After(absl::Milliseconds(20), [&] { came.push_back(2); });
  loop.After(absl::Milliseconds(1), [&] { came.push_back(1); });
  loop.After(absl::Milliseconds(40), [&] { loop.Quit(7); });
  EXPECT_EQ(loop.Run(), 7);
  EXPECT_EQ(came, (std::vector<int>{1, 2}));
}

TEST(EventLoop, ATimerMayCancelAnotherThatIsDueToo) {
  EventLoop loop(services::RealClock());
  bool called = false;
  EventLoop::TimerId second = 0;
  loop.After(absl::ZeroDuration(), [&] { loop.Cancel(second); });
  second = loop.After(absl::ZeroDuration(), [&] { called = true; });
  loop.After(absl::Milliseconds(10), [&] { loop.Quit(0); });
  loop.Run();
  EXPECT_FALSE(called);
}

TEST(EventLoop, AWatchMayEndItselfAndADescriptorOfTheSameNumberIsANewOne) {
  EventLoop loop(services::RealClock());
  int first[2];
  int second[2];
  ASSERT_EQ(::pipe(first), 0);
  ASSERT_EQ(::pipe(second), 0);
  ASSERT_EQ(::write(first[1], "x", 1), 1);
  ASSERT_EQ(::write(second[1], "x", 1), 1);
  int first_calls = 0;
  int second_calls = 0;
  // Both are ready in the same round; the first takes the second's watch away.
  loop.Watch(first[0], POLLIN, [&] {
    ++first_calls;
    loop.Unwatch(first[0]);
    loop.Watch(second[0], POLLIN, [&] { loop.Quit(0); });
  });
  loop.Watch(second[0], POLLIN, [&] { ++second_calls; });
  loop.Run();
  EXPECT_EQ(first_calls, 1);
  EXPECT_EQ(second_calls, 0);
  for (const int fd : {first[0], first[1], second[0], second[1]}) ::close(fd);
}

TEST(EventLoop, AHangUpIsReported) {
  EventLoop loop(services::RealClock());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  loop.Watch(ends[0], POLLIN, [&] { loop.Quit(3); });
  ::close(ends[1]);
  EXPECT_EQ(loop.Run(), 3);
  ::close(ends[0]);
}

}  // namespace
}  // namespace tessera::cli

#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_EVENT_LOOP_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>

#include "absl/time/time.h"
#include "services/common/clock.h"

namespace tessera::cli {

// One thread that sleeps in poll() until a descriptor is ready or a time has come, and then calls
// whoever asked for it. Callbacks may add and remove watches and timers, their own too.
//
// Ownership: borrows the descriptors and the clock.  Threading: one thread.
class EventLoop final {
 public:
  using TimerId = uint64_t;  // never 0

  explicit EventLoop(const services::Clock& clock) : clock_(clock) {}
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Calls `ready` whenever `fd` has one of `events` (poll's), an error or a hang-up. One watch a
  // descriptor; a second replaces the first.
  void Watch(int fd, short events, std::function<void()> ready);
  void Unwatch(int fd);

  // Calls `due` once, `delay` from now.
  TimerId After(absl::Duration delay, std::function<void()> due);
  // No effect once it has been called, or for 0.
  void Cancel(TimerId timer);

  // Runs until Quit; returns its argument.
  int Run();
  void Quit(int exit_status);

  absl::Duration Now() const { return clock_.Monotonic(); }

 private:
  struct WatchEntry {
    short events = 0;
    uint64_t serial = 0;  // tells a watch from a later one of the same number
    std::function<void()> ready;
  };
  struct Timer {
    absl::Duration at;
    std::function<void()> due;
  };

  int PollTimeoutMs() const;
  void RunTimers();
  void RunOnce();

  const services::Clock& clock_;
  std::map<int, WatchEntry> watches_;
  std::map<TimerId, Timer> timers_;
  uint64_t serial_ = 0;
  bool quit_ = false;
  int exit_status_ = 0;
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_EVENT_LOOP_H_

#include "services/cli/commands/up/event_loop.h"

#include <poll.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace tessera::cli {

void EventLoop::Watch(int fd, short events, std::function<void()> ready) {
  watches_[fd] = {.events = events, .serial = ++serial_, .ready = std::move(ready)};
}

void EventLoop::Unwatch(int fd) { watches_.erase(fd); }

EventLoop::TimerId EventLoop::After(absl::Duration delay, std::function<void()> due) {
  const TimerId id = ++serial_;
  timers_[id] = {.at = Now() + delay, .due = std::move(due)};
  return id;
}

void EventLoop::Cancel(TimerId timer) { timers_.erase(timer); }

int EventLoop::Run() {
  quit_ = false;
  while (!quit_) RunOnce();
  return exit_status_;
}

void EventLoop::Quit(int exit_status) {
  quit_ = true;
  exit_status_ = exit_status;
}

int EventLoop::PollTimeoutMs() const {
  if (timers_.empty()) return -1;
  absl::Duration at = absl::InfiniteDuration();
  for (const auto& [id, timer] : timers_) at = std::min(at, timer.at);
  // Rounded up, or the loop would spin through the last part of a millisecond.
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(at - Now(), absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(ms, 0, std::numeric_limits<int>::max()));
}

void EventLoop::RunTimers() {
  std::vector<std::pair<absl::Duration, TimerId>> due;
  const absl::Duration now = Now();
  for (const auto& [id, timer] : timers_) {
    if (timer.at <= now) due.emplace_back(timer.at, id);
  }
  std::sort(due.begin(), due.end());
  for (const auto& [at, id] : due) {
    const auto found = timers_.find(id);
    if (found == timers_.end() || quit_) continue;  // an earlier one cancelled it
    const std::function<void()> call = std::move(found->second.due);
    timers_.erase(found);
    call();
  }
}

void EventLoop::RunOnce() {
  std::vector<pollfd> polled;
  std::vector<uint64_t> serials;
  for (const auto& [fd, watch] : watches_) {
    polled.push_back({.fd = fd, .events = watch.events, .revents = 0});
    serials.push_back(watch.serial);
  }
  if (::poll(polled.data(), polled.size(), PollTimeoutMs()) > 0) {
    for (size_t i = 0; i < polled.size() && !quit_; ++i) {
      if (polled[i].revents == 0) continue;
      const auto found = watches_.find(polled[i].fd);
      if (found == watches_.end() || found->second.serial != serials[i]) continue;
      const std::function<void()> call = found->second.ready;  // it may unwatch itself
      call();
    }
  }
  if (!quit_) RunTimers();
}

}  // namespace tessera::cli

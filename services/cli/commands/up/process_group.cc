#include "services/cli/commands/up/process_group.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/cli/commands/up/child_process.h"

namespace tessera::cli {
namespace {

void WriteAll(int fd, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = ::write(fd, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a full disk must not end the service
    data += written;
    bytes -= static_cast<size_t>(written);
  }
}

void Close(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

ProcessGroup::ProcessGroup(EventLoop& loop, std::vector<ChildSpec> specs,
                           const GroupOptions& options, GroupObserver& observer)
    : loop_(loop), options_(options), observer_(observer) {
  for (ChildSpec& spec : specs) {
    children_.emplace_back();
    children_.back().spec = std::move(spec);
  }
}

ProcessGroup::~ProcessGroup() {
  for (Child& child : children_) {
    loop_.Cancel(child.restart_timer);
    if (child.pid > 0) {
      ::kill(child.pid, SIGKILL);
      while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    if (child.output_read >= 0) loop_.Unwatch(child.output_read);
    Close(child.output_read);
    Close(child.output_write);
    Close(child.log_fd);
  }
  loop_.Cancel(stop_timer_);
  if (signal_fd_ >= 0) loop_.Unwatch(signal_fd_);
  Close(signal_fd_);
}

absl::Status ProcessGroup::Start() {
  sigset_t child_signal;
  ::sigemptyset(&child_signal);
  ::sigaddset(&child_signal, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &child_signal, nullptr);
  // Whoever started us may have had it ignored, and then nothing could be waited for.
  ::signal(SIGCHLD, SIG_DFL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal_fd_ = ::signalfd(-1, &child_signal, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd_ < 0) return absl::InternalError(absl::StrCat("signalfd: ", strerror(errno)));
  loop_.Watch(signal_fd_, POLLIN, [this] { Reap(); });
  phase_ = Phase::kStarting;
  for (size_t i = 0; i < children_.size(); ++i) {
    absl::Status status = Open(children_[i]);
    if (status.ok()) {
      loop_.Watch(children_[i].output_read, POLLIN, [this, i] { ReadOutput(i); });
      status = Spawn(children_[i]);
    }
    if (!status.ok()) {
      for (Child& child : children_) {
        if (child.pid > 0) {
          ::kill(child.pid, SIGKILL);
          ::waitpid(child.pid, nullptr, 0);
          child.pid = -1;
        }
      }
      phase_ = Phase::kStopped;
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status ProcessGroup::Open(Child& child) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("pipe: ", strerror(errno)));
  }
  child.output_read = ends[0];
  child.output_write = ends[1];
  // Only our end: the flag belongs to an end, and the child's must block.
  ::fcntl(child.output_read, F_SETFL, O_NONBLOCK);
  if (child.spec.log_path.empty()) return absl::OkStatus();
  child.log_fd =
      ::open(child.spec.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (child.log_fd >= 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write ", child.spec.log_path, ": ", strerror(errno)));
}

absl::Status ProcessGroup::Spawn(Child& child) {
  absl::StatusOr<pid_t> pid =
      SpawnChild(child.spec.program, child.spec.arguments, child.output_write);
  if (!pid.ok()) return pid.status();
  child.pid = *pid;
  child.serving = false;
  return absl::OkStatus();
}

void ProcessGroup::MarkStarted() {
  if (phase_ == Phase::kStarting) phase_ = Phase::kServing;
}

void ProcessGroup::SetServing(size_t index, bool serving) {
  Child& child = children_[index];
  if (child.pid <= 0 || child.serving == serving) return;
  child.serving = serving;
  child.serving_since = loop_.Now();
}

void ProcessGroup::ReadOutput(size_t index) {
  Child& child = children_[index];
  char buffer[16 << 10];
  // More than a pipe holds, so that the last words of a child that ended are read; yet a child that
  // writes without end does not keep us from the others.
  for (int reads = 0; reads < 16; ++reads) {
    const ssize_t bytes = ::read(child.output_read, buffer, sizeof buffer);
    if (bytes <= 0) return;
    if (child.log_fd >= 0) WriteAll(child.log_fd, buffer, static_cast<size_t>(bytes));
    for (ssize_t i = 0; i < bytes; ++i) {
      if (buffer[i] == '\n' || child.line.size() >= kLineBytesMax) EmitLine(index);
      if (buffer[i] != '\n') child.line.push_back(buffer[i]);
    }
  }
}

void ProcessGroup::EmitLine(size_t index) {
  const std::string line = std::exchange(children_[index].line, "");
  observer_.OnLine(index, line);
}

void ProcessGroup::Reap() {
  signalfd_siginfo info;
  while (::read(signal_fd_, &info, sizeof info) > 0) {
  }
  for (;;) {
    int wait_status = 0;
    const pid_t pid = ::waitpid(-1, &wait_status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) break;
    for (size_t i = 0; i < children_.size(); ++i) {
      if (children_[i].pid == pid) {
        OnEnded(i, wait_status);
        break;
      }
    }
  }
  FinishIfGone();
}

void ProcessGroup::OnEnded(size_t index, int wait_status) {
  Child& child = children_[index];
  child.pid = -1;
  ReadOutput(index);
  if (!child.line.empty()) EmitLine(index);
  switch (phase_) {
    case Phase::kStarting:
      observer_.OnStartFailed(index, wait_status);
      return;
    case Phase::kServing:
      Died(index, wait_status);
      return;
    case Phase::kStopping:
      if (index == stopping_) StopNext();
      return;
    case Phase::kIdle:
    case Phase::kStopped:
      return;
  }
}

void ProcessGroup::Died(size_t index, int wait_status) {
  Child& child = children_[index];
  const absl::Duration served =
      child.serving ? loop_.Now() - child.serving_since : absl::ZeroDuration();
  const RestartDecision decision = DecideRestart(options_.restart, child.quick_failures, served);
  child.serving = false;
  child.quick_failures = decision.quick_failures;
  if (!decision.give_up) {
    child.restart_timer = loop_.After(decision.delay, [this, index] { Restart(index); });
  }
  observer_.OnDied(index, wait_status, decision);
}

void ProcessGroup::Restart(size_t index) {
  Child& child = children_[index];
  child.restart_timer = 0;
  if (phase_ != Phase::kServing) return;
  if (const absl::Status status = Spawn(child); !status.ok()) {
    // A binary that is being replaced, or a system out of processes: both may pass.
    observer_.OnLine(index, absl::StrCat("cannot be started: ", status.message()));
    Died(index, /*wait_status=*/127 << 8);
    return;
  }
  observer_.OnRestarted(index);
}

void ProcessGroup::Stop() {
  if (phase_ != Phase::kStarting && phase_ != Phase::kServing) return;
  phase_ = Phase::kStopping;
  for (Child& child : children_) loop_.Cancel(std::exchange(child.restart_timer, 0));
  stopping_ = children_.size();
  StopNext();
}

void ProcessGroup::StopNext() {
  loop_.Cancel(std::exchange(stop_timer_, 0));
  while (stopping_ > 0 && children_[stopping_ - 1].pid <= 0) --stopping_;
  if (stopping_ == 0) {
    // What the children left behind is reaped by FinishIfGone as it ends.
    stop_timer_ = loop_.After(kOrphansMax, [this] { Finish(); });
    FinishIfGone();
    return;
  }
  --stopping_;
  ::kill(children_[stopping_].pid, SIGTERM);
  stop_timer_ = loop_.After(options_.stop_max, [this] {
    stop_timer_ = 0;
    ::kill(children_[stopping_].pid, SIGKILL);
    observer_.OnKilled(stopping_);
  });
}

void ProcessGroup::Kill() {
  if (phase_ == Phase::kIdle || phase_ == Phase::kStopped) return;
  phase_ = Phase::kStopping;
  loop_.Cancel(std::exchange(stop_timer_, 0));
  for (Child& child : children_) {
    loop_.Cancel(std::exchange(child.restart_timer, 0));
    if (child.pid > 0) ::kill(child.pid, SIGKILL);
  }
  stopping_ = children_.size();
  stop_timer_ = loop_.After(kOrphansMax, [this] { Finish(); });
  FinishIfGone();
}

void ProcessGroup::FinishIfGone() {
  if (phase_ != Phase::kStopping) return;
  for (const Child& child : children_) {
    if (child.pid > 0) return;
  }
  // No child of ours is left, nor any orphan: those are our children too.
  siginfo_t info;
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD) Finish();
}

void ProcessGroup::Finish() {
  if (phase_ == Phase::kStopped) return;
  loop_.Cancel(std::exchange(stop_timer_, 0));
  phase_ = Phase::kStopped;
  observer_.OnStopped();
}

}  // namespace tessera::cli

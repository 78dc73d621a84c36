#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_PROCESS_GROUP_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_PROCESS_GROUP_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/cli/commands/up/event_loop.h"
#include "services/cli/commands/up/restart_policy.h"

namespace tessera::cli {

// A longer line of a child's output is cut into several.
inline constexpr size_t kLineBytesMax = 64 << 10;
// How long the last descendants may take to vanish after all children have.
inline constexpr absl::Duration kOrphansMax = absl::Seconds(2);

struct ChildSpec {
  std::string name;  // "engine"
  std::string program;
  std::vector<std::string> arguments;
  std::string log_path;  // its output is appended here as it is; empty: nowhere
};

struct GroupOptions {
  RestartLimits restart;
  // How long a child may take to end after SIGTERM; then SIGKILL.
  absl::Duration stop_max = absl::Seconds(35);
};

// Hears what happens to the children, by index. Called from the loop; may call the group.
class GroupObserver {
 public:
  virtual ~GroupObserver() = default;
  // One line of a child's output, without its end.
  virtual void OnLine(size_t child, std::string_view line) = 0;
  // It ended before MarkStarted. It is not started again; Stop is what remains to be done.
  virtual void OnStartFailed(size_t child, int wait_status) = 0;
  // It ended later, and the policy decided. After give_up, Stop is what remains to be done.
  virtual void OnDied(size_t child, int wait_status, const RestartDecision& decision) = 0;
  virtual void OnRestarted(size_t child) = 0;
  // It did not end within stop_max and was killed.
  virtual void OnKilled(size_t child) = 0;
  // Every child and every descendant that they left has gone.
  virtual void OnStopped() = 0;
};

// Child processes that are started at once, restarted when they die, and stopped last one first.
//
//   Start -> every child runs -> MarkStarted: from now on a child that dies is started again, after
//   a pause (restart_policy.h) -> Stop: SIGTERM to the last child, wait, then to the one before it.
//
// The group reaps all children of this process, and makes it the parent of orphans among its
// descendants (a killed engine's worker), so that none stays a zombie.
//
// Ownership: borrows the loop and the observer.  Threading: one thread, the loop's, which must live
// as long as the children (child_process.h). Start it before any other thread of the process, since
// it blocks SIGCHLD, and threads inherit that.
class ProcessGroup final {
 public:
  ProcessGroup(EventLoop& loop, std::vector<ChildSpec> specs, const GroupOptions& options,
               GroupObserver& observer);
  // Kills and reaps what still runs.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Errors: kNotFound, kFailedPrecondition (a log file) or kInternal, naming the program or file;
  // nothing runs then.
  absl::Status Start();
  void MarkStarted();
  // Tells the restart policy whether a child does its work.
  void SetServing(size_t child, bool serving);
  // SIGTERM in order; OnStopped follows.
  void Stop();
  // SIGKILL to all at once; OnStopped follows.
  void Kill();

  bool running(size_t child) const { return children_[child].pid > 0; }
  pid_t pid(size_t child) const { return children_[child].pid; }
  const ChildSpec& spec(size_t child) const { return children_[child].spec; }
  size_t size() const { return children_.size(); }

 private:
  enum class Phase : uint8_t { kIdle, kStarting, kServing, kStopping, kStopped };
  struct Child {
    ChildSpec spec;
    pid_t pid = -1;        // -1: not running
    int output_read = -1;  // one pipe for all its lives; we hold both ends, so it never ends
    int output_write = -1;
    int log_fd = -1;
    std::string line;  // of output, not complete yet
    bool serving = false;
    absl::Duration serving_since;
    int quick_failures = 0;
    EventLoop::TimerId restart_timer = 0;
  };

  absl::Status Open(Child& child);
  absl::Status Spawn(Child& child);
  void Restart(size_t index);
  void ReadOutput(size_t index);
  void EmitLine(size_t index);
  void Reap();
  void OnEnded(size_t index, int wait_status);
  void Died(size_t index, int wait_status);
  void StopNext();
  void FinishIfGone();
  void Finish();

  EventLoop& loop_;
  const GroupOptions options_;
  GroupObserver& observer_;
  std::vector<Child> children_;
  Phase phase_ = Phase::kIdle;
  int signal_fd_ = -1;
  EventLoop::TimerId stop_timer_ = 0;
  size_t stopping_ = 0;  // the child that was told to stop; size(): none yet
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_PROCESS_GROUP_H_

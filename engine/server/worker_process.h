#ifndef TESSERA_ENGINE_SERVER_WORKER_PROCESS_H_
#define TESSERA_ENGINE_SERVER_WORKER_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tessera::engine {

// A child process that can be waited for with poll. It runs in a process group of its own, so that
// a terminal's Ctrl-C reaches us alone and we can drain, and with default signals.
// The thread that spawns it must live as long as it: a worker asks to die with that thread.
// Threading: one thread.
class WorkerProcess final {
 public:
  // Errors: kNotFound: no such program; kInternal: the system could not start it.
  static absl::StatusOr<WorkerProcess> Spawn(const std::string& program,
                                             const std::vector<std::string>& arguments);
  // Kills and reaps it if it still runs.
  ~WorkerProcess();
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(WorkerProcess&&) = delete;

  // Readable once it has ended; for poll.
  int exit_fd() const { return exit_fd_; }
  pid_t pid() const { return pid_; }
  // Its end in words ("was killed by signal 9", "exited with code 1"), if it has ended.
  std::optional<std::string> PollEnd();
  // SIGKILL, then waits until it is gone.
  void Kill();

 private:
  WorkerProcess(pid_t pid, int exit_fd) : pid_(pid), exit_fd_(exit_fd) {}
  pid_t pid_;  // -1 once reaped or moved from
  int exit_fd_;
  std::optional<std::string> end_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SERVER_WORKER_PROCESS_H_

#include "engine/server/worker_process.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

extern char** environ;

namespace tessera::engine {
namespace {

std::string Words(int status) {
  if (WIFSIGNALED(status)) return absl::StrCat("was killed by signal ", WTERMSIG(status));
  return absl::StrCat("exited with code ", WEXITSTATUS(status));
}

}  // namespace

absl::StatusOr<WorkerProcess> WorkerProcess::Spawn(const std::string& program,
                                                   const std::vector<std::string>& arguments) {
  if (::access(program.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat(program, ": ", std::strerror(errno), "; --bin-dir says where it is"));
  }
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), nullptr, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return absl::InternalError(absl::StrCat(program, ": ", std::strerror(error)));
  const int exit_fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  WorkerProcess process(pid, exit_fd);
  if (exit_fd < 0) {
    return absl::InternalError(absl::StrCat("pidfd_open: ", std::strerror(errno)));
  }
  return process;
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      exit_fd_(std::exchange(other.exit_fd_, -1)),
      end_(std::move(other.end_)) {}

WorkerProcess::~WorkerProcess() {
  Kill();
  if (exit_fd_ >= 0) ::close(exit_fd_);
}

std::optional<std::string> WorkerProcess::PollEnd() {
  int status = 0;
  if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    end_ = Words(status);
    pid_ = -1;
  }
  return end_;
}

void WorkerProcess::Kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  end_ = Words(status);
  pid_ = -1;
}

}  // namespace tessera::engine

#include "services/cli/commands/up/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

extern char** environ;

namespace tessera::cli {
namespace {

constexpr int kExecFailed = 127;

// In the child, between fork and exec: other threads' locks may be held for ever here, so only what
// is safe in a signal handler may be called.
[[noreturn]] void Become(const char* program, char* const* argv, pid_t parent, int output_fd,
                         int error_fd) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The signal comes for a parent that ends from now on; one that has ended shows in getppid.
  if (::getppid() != parent) ::_exit(kExecFailed);
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &by_default, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null_fd >= 0 && ::dup2(null_fd, STDIN_FILENO) >= 0 && ::dup2(output_fd, STDOUT_FILENO) >= 0 &&
      ::dup2(output_fd, STDERR_FILENO) >= 0) {
    // Also what whoever started us left open.
    ::close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
    ::execve(program, argv, environ);
  }
  const int error = errno;
  (void)!::write(error_fd, &error, sizeof error);
  ::_exit(kExecFailed);
}

}  // namespace

absl::StatusOr<pid_t> SpawnChild(const std::string& program,
                                 const std::vector<std::string>& arguments, int output_fd) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  int error_pipe[2];  // closed by a successful exec, else it carries errno
  if (::pipe2(error_pipe, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("pipe: ", strerror(errno)));
  }
  const absl::Cleanup close_read = [&] { ::close(error_pipe[0]); };
  const pid_t parent = ::getpid();
  // Without the handlers that libraries hang on fork: the child only becomes another program.
  const pid_t pid = ::_Fork();
  if (pid == 0) Become(program.c_str(), argv.data(), parent, output_fd, error_pipe[1]);
  const int fork_error = errno;
  ::close(error_pipe[1]);
  if (pid < 0) return absl::InternalError(absl::StrCat(program, ": fork: ", strerror(fork_error)));
  int error = 0;
  ssize_t bytes = 0;
  do {
    bytes = ::read(error_pipe[0], &error, sizeof error);
  } while (bytes < 0 && errno == EINTR);
  if (bytes <= 0) return pid;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  const std::string message = absl::StrCat(program, ": ", strerror(error));
  return error == ENOENT ? absl::NotFoundError(message) : absl::InternalError(message);
}

std::string EndWords(int wait_status) {
  if (!WIFSIGNALED(wait_status)) {
    return absl::StrCat("exited with status ", WEXITSTATUS(wait_status));
  }
  const int signal = WTERMSIG(wait_status);
  const char* const name = sigdescr_np(signal);
  return absl::StrCat("died: signal ", signal,
                      name == nullptr ? "" : absl::StrCat(" (", name, ")"));
}

}  // namespace tessera::cli

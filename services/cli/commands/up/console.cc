#include "services/cli/commands/up/console.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace tessera::cli {

Console::Console(int fd) : fd_(fd) {
  // O_NONBLOCK would reach everyone who shares this terminal or pipe; opened anew it is ours alone.
  // A file is never slow in that way, and opened anew it would be written from its beginning.
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || !(S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))) return;
  const std::string path = absl::StrCat("/proc/self/fd/", fd);
  const int own = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (own < 0) return;
  fd_ = own;
  owned_ = true;
}

Console::~Console() {
  if (owned_) ::close(fd_);
}

void Console::Say(std::string_view who, std::string_view text) {
  if (dropped_ > 0) {
    if (!Write(absl::StrCat("(", dropped_, " lines were dropped: nobody read them)\n"))) {
      ++dropped_;
      return;
    }
    dropped_ = 0;
  }
  std::string line(who);
  line += ": ";
  line += text;
  line += '\n';
  if (!Write(line)) ++dropped_;
}

bool Console::Write(std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = ::write(fd_, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    line.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace tessera::cli

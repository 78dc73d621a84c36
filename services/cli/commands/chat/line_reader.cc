#include "services/cli/commands/chat/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tessera::cli {

LineEvent LineReader::Read(std::string& line) {
  while (!TakeLine(line)) {
    if (ended_) return LineEvent::kEnd;
    pollfd fds[] = {{.fd = fd_, .events = POLLIN, .revents = 0},
                    {.fd = interrupt_fd_, .events = POLLIN, .revents = 0}};
    if (poll(fds, 2, -1) < 0) {
      ended_ = errno != EINTR;
      continue;
    }
    if (fds[1].revents != 0) {
      buffer_.clear();
      return LineEvent::kInterrupted;
    }
    char bytes[4096];
    const ssize_t count = read(fd_, bytes, sizeof(bytes));
    if (count > 0) {
      buffer_.append(bytes, static_cast<size_t>(count));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      ended_ = true;
    }
  }
  return LineEvent::kLine;
}

bool LineReader::TakeLine(std::string& line) {
  size_t bytes = buffer_.find('\n');
  const bool whole = bytes != std::string::npos;
  if (!whole && buffer_.size() < kInputLineBytesMax && (!ended_ || buffer_.empty())) return false;
  bytes = std::min({bytes, buffer_.size(), kInputLineBytesMax});
  line = buffer_.substr(0, bytes);
  buffer_.erase(0, bytes + (bytes < buffer_.size() && buffer_[bytes] == '\n' ? 1 : 0));
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return true;
}

}  // namespace tessera::cli

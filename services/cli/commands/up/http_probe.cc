#include "services/cli/commands/up/http_probe.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace tessera::cli {
namespace {

// "HTTP/1.1 200"
constexpr size_t kStatusLineBytes = 12;

}  // namespace

HttpProbe::HttpProbe(EventLoop& loop, std::string address, std::function<void()> healthy)
    : loop_(loop), address_(std::move(address)), healthy_(std::move(healthy)) {}

HttpProbe::~HttpProbe() { Stop(); }

void HttpProbe::Start() {
  if (timer_ == 0) Ask();
}

void HttpProbe::Stop() {
  loop_.Cancel(std::exchange(timer_, 0));
  CloseSocket();
}

bool HttpProbe::Resolve() {
  if (to_bytes_ != 0) return true;
  const size_t colon = address_.rfind(':');
  std::string host = address_.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), address_.c_str() + colon + 1, &hints, &found) != 0) return false;
  ::memcpy(&to_, found->ai_addr, found->ai_addrlen);
  to_bytes_ = found->ai_addrlen;
  ::freeaddrinfo(found);
  return true;
}

void HttpProbe::Ask() {
  timer_ = 0;
  CloseSocket();
  if (Resolve()) fd_ = ::socket(to_.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return AskLater();
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&to_), to_bytes_) != 0 && errno != EINPROGRESS) {
    return AskLater();
  }
  asked_ = false;
  answer_.clear();
  loop_.Watch(fd_, POLLOUT, [this] { OnReady(); });
  timer_ = loop_.After(kProbeMax, [this] { Ask(); });
}

void HttpProbe::OnReady() {
  if (!asked_) {
    const std::string request =
        absl::StrCat("GET /health HTTP/1.1\r\nHost: ", address_, "\r\nConnection: close\r\n\r\n");
    // A new connection's buffer takes these few bytes whole.
    if (::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      return AskLater();
    }
    asked_ = true;
    loop_.Watch(fd_, POLLIN, [this] { OnReady(); });
    return;
  }
  char buffer[256];
  const ssize_t bytes = ::recv(fd_, buffer, sizeof buffer, 0);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (bytes <= 0) return AskLater();
  answer_.append(buffer, static_cast<size_t>(bytes));
  if (answer_.size() < kStatusLineBytes) return;
  if (answer_.compare(kStatusLineBytes - 4, 4, " 200") != 0) return AskLater();
  Stop();
  healthy_();
}

void HttpProbe::AskLater() {
  Stop();
  timer_ = loop_.After(kProbeInterval, [this] { Ask(); });
}

void HttpProbe::CloseSocket() {
  if (fd_ < 0) return;
  loop_.Unwatch(fd_);
  ::close(std::exchange(fd_, -1));
}

}  // namespace tessera::cli

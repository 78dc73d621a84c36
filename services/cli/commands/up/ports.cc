#include "services/cli/commands/up/ports.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

using services::FieldError;

std::string Join(const std::string& host, uint16_t port) {
  if (host.find(':') != std::string::npos) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

uint16_t PortOf(int fd) {
  sockaddr_storage bound = {};
  socklen_t bytes = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

}  // namespace

absl::StatusOr<HeldPort> HeldPort::Take(std::string_view flag, const std::string& host,
                                        uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
      error != 0) {
    return FieldError(absl::StatusCode::kInvalidArgument, "--host",
                      absl::StrCat("\"", host, "\" is not known: ", ::gai_strerror(error)));
  }
  const absl::Cleanup free_found = [found] { ::freeaddrinfo(found); };
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::InternalError(absl::StrCat("socket: ", strerror(errno)));
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd, found->ai_addr, found->ai_addrlen) != 0) {
    const int error = errno;
    ::close(fd);
    if (error == EADDRINUSE) {
      return FieldError(absl::StatusCode::kFailedPrecondition, flag,
                        absl::StrCat("address ", Join(host, port),
                                     " is in use by another process; stop it, or give another "
                                     "port (0 takes a free one)"));
    }
    const bool host_is_wrong = error == EADDRNOTAVAIL;
    return FieldError(absl::StatusCode::kInvalidArgument, host_is_wrong ? "--host" : flag,
                      absl::StrCat("cannot listen on ", Join(host, port), ": ", strerror(error)));
  }
  const uint16_t bound = PortOf(fd);
  std::string client = host;
  if (host == "0.0.0.0") client = "127.0.0.1";
  if (host == "::") client = "::1";
  return HeldPort(fd, Join(host, bound), Join(client, bound));
}

HeldPort::~HeldPort() {
  if (fd_ >= 0) ::close(fd_);
}

HeldPort::HeldPort(HeldPort&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      listen_(std::move(other.listen_)),
      client_(std::move(other.client_)) {}

HeldPort& HeldPort::operator=(HeldPort&& other) noexcept {
  std::swap(fd_, other.fd_);
  listen_ = std::move(other.listen_);
  client_ = std::move(other.client_);
  return *this;
}

}  // namespace tessera::cli

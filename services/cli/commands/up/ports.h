#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_PORTS_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_PORTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tessera::cli {

// A TCP port kept for a child that listens on it, and for the next one after that child died: bound
// here but not listened on. A socket with SO_REUSEADDR, which every server sets, may then bind and
// listen; the system hands it out to no one who asks for any port, and takes it as the source of no
// outgoing connection (which can otherwise connect a waiting client to itself).
class HeldPort final {
 public:
  // `port` 0 takes a free one. `flag` is what the user would change.
  // Errors: kFailedPrecondition when it is in use, kInvalidArgument for a host that is not known or
  // not of this machine; one line that names flag, address and remedy.
  static absl::StatusOr<HeldPort> Take(std::string_view flag, const std::string& host,
                                       uint16_t port);
  ~HeldPort();
  HeldPort(HeldPort&& other) noexcept;
  HeldPort& operator=(HeldPort&& other) noexcept;
  HeldPort(const HeldPort&) = delete;

  // HOST:PORT (IPv6 in brackets) as the child's --listen takes it.
  const std::string& listen_address() const { return listen_; }
  // HOST:PORT for a client on this machine: a host that means all addresses becomes loopback.
  const std::string& client_address() const { return client_; }

 private:
  HeldPort(int fd, std::string listen, std::string client)
      : fd_(fd), listen_(std::move(listen)), client_(std::move(client)) {}
  int fd_;
  std::string listen_;
  std::string client_;
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_PORTS_H_

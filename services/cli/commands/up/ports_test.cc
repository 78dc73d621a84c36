#include "services/cli/commands/up/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

// A server as every one of ours is: SO_REUSEADDR, bind, listen. -1: refused.
int Listen(const std::string& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 && ::listen(fd, 4) == 0) {
    return fd;
  }
  ::close(fd);
  return -1;
}

uint16_t PortIn(const std::string& address) {
  return static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

TEST(HeldPort, AServerMayListenOnItAgainAndAgain) {
  const auto held = HeldPort::Take("--port", "127.0.0.1", 0);
  ASSERT_TRUE(held.ok()) << held.status();
  for (int life = 0; life < 3; ++life) {
    const int server = Listen(held->listen_address());
    ASSERT_GE(server, 0) << life;
    ::close(server);
  }
}

TEST(HeldPort, FreePortsDifferWhileTheyAreHeld) {
  std::vector<HeldPort> held;
  std::set<std::string> addresses;
  for (int i = 0; i < 50; ++i) {
    auto port = HeldPort::Take("--port", "127.0.0.1", 0);
    ASSERT_TRUE(port.ok());
    addresses.insert(port->listen_address());
    held.push_back(*std::move(port));
  }
  EXPECT_EQ(addresses.size(), 50u);
}

TEST(HeldPort, APortInUseIsRefusedWithFlagAndRemedy) {
  const auto first = HeldPort::Take("--port", "127.0.0.1", 0);
  ASSERT_TRUE(first.ok());
  const int server = Listen(first->listen_address());
  ASSERT_GE(server, 0);
  const auto second = HeldPort::Take("--engine-port", "127.0.0.1", PortIn(first->listen_address()));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  const std::string message(second.status().message());
  EXPECT_THAT(message, testing::StartsWith("--engine-port: "));
  EXPECT_THAT(message, testing::HasSubstr(first->listen_address()));
  EXPECT_THAT(message, testing::HasSubstr("in use"));
  ::close(server);
}

TEST(HeldPort, AHostThatMeansEveryAddressIsReachedOverLoopback) {
  const auto held = HeldPort::Take("--port", "0.0.0.0", 0);
  ASSERT_TRUE(held.ok());
  EXPECT_THAT(held->listen_address(), testing::StartsWith("0.0.0.0:"));
  EXPECT_THAT(held->client_address(), testing::StartsWith("127.0.0.1:"));
}

TEST(HeldPort, AnUnknownHostIsNamed) {
  const auto held = HeldPort::Take("--port", "no such host", 0);
  ASSERT_FALSE(held.ok());
  EXPECT_THAT(std::string(held.status().message()), testing::HasSubstr("no such host"));
}

}  // namespace
}  // namespace tessera::cli

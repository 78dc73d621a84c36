#include "services/cli/commands/up/http_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/clock.h"

namespace tessera::cli {
namespace {

// A server in the same loop that gives its answers one after another.
class Server {
 public:
  explicit Server(EventLoop& loop) : loop_(loop) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    socklen_t bytes = sizeof to;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&to), &bytes);
    address_ = absl::StrCat("127.0.0.1:", ntohs(to.sin_port));
  }
  ~Server() {
    loop_.Unwatch(fd_);
    ::close(fd_);
  }
  void Listen(std::vector<std::string> answers) {
    answers_ = std::move(answers);
    ASSERT_EQ(::listen(fd_, 4), 0);
    loop_.Watch(fd_, POLLIN, [this] {
      const int connection = ::accept(fd_, nullptr, nullptr);
      loop_.Watch(connection, POLLIN, [this, connection] { Answer(connection); });
    });
  }
  const std::string& address() const { return address_; }
  const std::vector<std::string>& requests() const { return requests_; }

 private:
  void Answer(int connection) {
    char request[512];
    const ssize_t bytes = ::recv(connection, request, sizeof request, 0);
    if (bytes > 0) {
      requests_.emplace_back(request, static_cast<size_t>(bytes));
      const std::string& answer = answers_[std::min(requests_.size(), answers_.size()) - 1];
      ::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    loop_.Unwatch(connection);
    ::close(connection);
  }

  EventLoop& loop_;
  int fd_;
  std::string address_;
  std::vector<std::string> answers_;
  std::vector<std::string> requests_;
};

TEST(HttpProbe, AsksUntilTheServerListensAndAnswers200) {
  EventLoop loop(services::RealClock());
  Server server(loop);
  HttpProbe probe(loop, server.address(), [&loop] { loop.Quit(1); });
  probe.Start();  // refused at first
  loop.After(absl::Milliseconds(50), [&server] {
    server.Listen(
        {"HTTP/1.1 503 Service Unavailable\r\n\r\n", "", "rubbish", "HTTP/1.1 200 OK\r\n\r\n"});
  });
  loop.After(absl::Seconds(10), [&loop] { loop.Quit(-1); });
  EXPECT_EQ(loop.Run(), 1);
  ASSERT_EQ(server.requests().size(), 4u);
  EXPECT_THAT(server.requests()[0], testing::StartsWith("GET /health HTTP/1.1\r\n"));
}

TEST(HttpProbe, StopEndsTheQuestions) {
  EventLoop loop(services::RealClock());
  Server server(loop);
  server.Listen({"HTTP/1.1 503 Service Unavailable\r\n\r\n"});
  HttpProbe probe(loop, server.address(), [] { FAIL() << "healthy?"; });
  probe.Start();
  size_t asked = 0;
  loop.After(absl::Milliseconds(100), [&] {
    probe.Stop();
    asked = server.requests().size();
  });
  loop.After(absl::Milliseconds(200), [&loop] { loop.Quit(0); });
  loop.Run();
  EXPECT_GT(asked, 0u);
  // One that had been sent may still be taken.
  EXPECT_LE(server.requests().size(), asked + 1);
}

}  // namespace
}  // namespace tessera::cli

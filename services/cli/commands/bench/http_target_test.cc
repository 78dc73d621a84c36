// The target against a server of the test's own, which says what each test scripts.

#include "services/cli/commands/bench/http_target.h"

#include <algorithm>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "services/cli/commands/bench/traffic_runner.h"
#include "services/common/clock.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using Request = http::request<http::string_body>;
using Json = nlohmann::ordered_json;

// Answers each request by a script that writes to the socket and says whether to keep it open.
class FakeServer final {
 public:
  using Script = std::function<bool(const Request&, tcp::socket&)>;

  explicit FakeServer(Script script)
      : script_(std::move(script)), accept_thread_([this] { Accept(); }) {}
  ~FakeServer() {
    // A connection of its own wakes the accept; the flag ends it.
    stopping_ = true;
    asio::io_context io;
    tcp::socket wake(io);
    error_code ignored;
    wake.connect(acceptor_.local_endpoint(), ignored);
    accept_thread_.join();
    {
      absl::MutexLock lock(&mutex_);
      for (tcp::socket& socket : sockets_) socket.shutdown(tcp::socket::shutdown_both, ignored);
    }
    for (std::thread& thread : threads_) thread.join();
  }

  std::string url() const {
    return absl::StrCat("http://127.0.0.1:", acceptor_.local_endpoint().port());
  }
  // Connections that sent a request.
  int connections() const { return connections_; }

 private:
  void Accept() {
    while (true) {
      tcp::socket accepted(io_);
      error_code ec;
      acceptor_.accept(accepted, ec);
      if (ec || stopping_) return;
      absl::MutexLock lock(&mutex_);
      tcp::socket& socket = sockets_.emplace_back(std::move(accepted));
      threads_.emplace_back([this, &socket] { Serve(socket); });
    }
  }

  void Serve(tcp::socket& socket) {
    boost::beast::flat_buffer buffer;
    error_code ec;
    for (bool first = true;; first = false) {
      Request request;
      http::read(socket, buffer, request, ec);
      if (ec) return;
      if (first) ++connections_;
      if (!script_(request, socket)) {
        socket.shutdown(tcp::socket::shutdown_both, ec);
        return;
      }
    }
  }

  const Script script_;
  asio::io_context io_;
  tcp::acceptor acceptor_{io_, {asio::ip::make_address("127.0.0.1"), 0}};
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0;
  absl::Mutex mutex_;
  std::list<tcp::socket> sockets_ ABSL_GUARDED_BY(mutex_);
  std::list<std::thread> threads_;  // the accept thread's, then the destructor's
  std::thread accept_thread_;
};

void Send(tcp::socket& socket, const std::string& bytes) {
  error_code ec;
  asio::write(socket, asio::buffer(bytes), ec);
}

constexpr char kStreamHeader[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string Chunk(const std::string& data) {
  const std::string event = absl::StrCat("data: ", data, "\n\n");
  return absl::StrFormat("%x\r\n%s\r\n", event.size(), event);
}

const std::string kText = Chunk(R"({"choices":[{"text":"x"}]})");
const std::string kEnd =
    Chunk(R"({"choices":[],"usage":{"prompt_tokens":6,"completion_tokens":2}})") + Chunk("[DONE]") +
    "0\r\n\r\n";

bool AnswerTwoTokens(const Request&, tcp::socket& socket) {
  Send(socket, kStreamHeader + kText + kText + kEnd);
  return true;
}

std::vector<RequestRecord> Measure(const HttpTraffic& traffic, size_t requests,
                                   size_t concurrency) {
  const auto target = MakeHttpTarget(traffic);
  EXPECT_TRUE(target.ok()) << target.status();
  return RunClosedLoop(**target, services::RealClock(), 0, requests, concurrency);
}

TEST(HttpTarget, KeepsItsConnectionForTheNextRequest) {
  FakeServer server(AnswerTwoTokens);
  const auto records = Measure({.url = server.url()}, 5, 1);
  for (const RequestRecord& record : records) {
    EXPECT_EQ(record.error, "") << record.message;
    EXPECT_EQ(record.prompt_tokens, 6u);
    EXPECT_EQ(record.output_tokens, 2u);
    EXPECT_FALSE(record.arrivals.empty());
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpTarget, OpensAsManyConnectionsAsRequestsAreOpen) {
  absl::Mutex mutex;
  int open = 0;
  FakeServer server([&](const Request& request, tcp::socket& socket) {
    {
      absl::MutexLock lock(&mutex);
      ++open;
      const auto all = [&] { return open >= 3; };
      mutex.AwaitWithTimeout(absl::Condition(&all), absl::Seconds(10));
    }
    return AnswerTwoTokens(request, socket);
  });
  for (const RequestRecord& record : Measure({.url = server.url()}, 6, 3)) {
    EXPECT_EQ(record.error, "") << record.message;
  }
  EXPECT_EQ(server.connections(), 3);
}

TEST(HttpTarget, TokensAreSeenWhenTheyComeNotWhenTheAnswerEnds) {
  absl::Notification seen;
  FakeServer server([&](const Request&, tcp::socket& socket) {
    Send(socket, kStreamHeader + kText);
    EXPECT_TRUE(seen.WaitForNotificationWithTimeout(absl::Seconds(10)));
    Send(socket, kText + kEnd);
    return true;
  });
  const auto target = MakeHttpTarget({.url = server.url()});
  ASSERT_TRUE(target.ok());
  absl::Notification done;
  uint32_t tokens = 0;
  (*target)->Start(0, {.on_tokens =
                           [&](uint32_t count) {
                             if (tokens == 0) seen.Notify();
                             tokens += count;
                           },
                       .on_done =
                           [&](const TrafficEnd& end) {
                             EXPECT_EQ(end.error, "");
                             done.Notify();
                           }});
  done.WaitForNotification();
  EXPECT_EQ(tokens, 2u);
}

TEST(HttpTarget, SendsTheBodyToTheEndpoint) {
  std::vector<Request> requests;
  FakeServer server([&](const Request& request, tcp::socket& socket) {
    requests.push_back(request);
    return AnswerTwoTokens(request, socket);
  });
  const HttpTraffic chat = {.url = server.url() + "/prefix/"};
  Measure(chat, 1, 1);
  Measure({.url = server.url(), .chat = false}, 1, 1);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].target(), "/prefix/v1/chat/completions");
  EXPECT_EQ(requests[1].target(), "/v1/completions");
  EXPECT_EQ(requests[0].body(), RequestBody(chat, 0));
  EXPECT_EQ(requests[0][http::field::content_type], "application/json");
}

TEST(HttpTarget, AConnectionThatTheServerHasClosedIsReplaced) {
  FakeServer server([](const Request& request, tcp::socket& socket) {
    AnswerTwoTokens(request, socket);
    return false;
  });
  for (const RequestRecord& record : Measure({.url = server.url()}, 4, 1)) {
    EXPECT_EQ(record.error, "") << record.message;
  }
  EXPECT_EQ(server.connections(), 4);
}

TEST(HttpTarget, AnErrorAnswerHasItsStatusAndMessage) {
  FakeServer server([](const Request&, tcp::socket& socket) {
    const std::string body = R"({"error":{"message":"the queue is full"}})";
    Send(socket, absl::StrCat("HTTP/1.1 429 Too Many Requests\r\nContent-Length: ", body.size(),
                              "\r\n\r\n", body));
    return true;
  });
  const auto records = Measure({.url = server.url()}, 2, 1);
  EXPECT_EQ(records[1].error, "HTTP 429");
  EXPECT_EQ(records[1].message, "the queue is full");
  EXPECT_EQ(server.connections(), 1);  // such an answer does not cost the connection
}

TEST(HttpTarget, AnAnswerThatBreaksOffIsAFailureThatKeepsItsTokens) {
  FakeServer server([](const Request&, tcp::socket& socket) {
    Send(socket, kStreamHeader + kText);
    return false;
  });
  const auto records = Measure({.url = server.url()}, 1, 1);
  EXPECT_EQ(records[0].error, "connection lost");
  EXPECT_EQ(records[0].output_tokens, 1u);
}

TEST(HttpTarget, AnAnswerThatNeverComesTimesOut) {
  absl::Notification done;
  FakeServer server([&](const Request&, tcp::socket&) {
    done.WaitForNotification();
    return false;
  });
  const auto records = Measure({.url = server.url(), .timeout = absl::Milliseconds(50)}, 1, 1);
  EXPECT_EQ(records[0].error, "timeout");
  done.Notify();
}

TEST(MakeHttpTarget, RefusesAUrlThatItDoesNotUnderstand) {
  for (const char* url :
       {"", "127.0.0.1:8000", "https://h", "http://", "http://:80", "http://h:"}) {
    const absl::Status status = MakeHttpTarget({.url = url}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_EQ(services::FieldOf(status), "--url");
  }
}

TEST(MakeHttpTarget, SaysWhenNothingAnswers) {
  std::string url;
  {
    FakeServer server(AnswerTwoTokens);
    url = server.url();
  }
  EXPECT_EQ(MakeHttpTarget({.url = url}).status().code(), absl::StatusCode::kUnavailable);
}

TEST(RequestBody, HoldsWhatWasAsked) {
  const Json chat = Json::parse(RequestBody({.model = "m", .prompt = "p", .max_tokens = 3}, 2));
  EXPECT_EQ(chat["model"], "m");
  EXPECT_EQ(chat["messages"], Json::array({Json::object({{"role", "user"}, {"content", "p"}})}));
  EXPECT_EQ(chat["max_tokens"], 3);
  EXPECT_EQ(chat["ignore_eos"], true);
  EXPECT_EQ(chat["stream_options"]["continuous_usage_stats"], true);
  const Json text = Json::parse(RequestBody({.chat = false, .prompt = "p"}, 2));
  EXPECT_FALSE(text.contains("model"));
  EXPECT_EQ(text["prompt"], "p");
}

TEST(RequestBody, RandomWordsDifferByIndexAndSeedAndAreRepeatable) {
  const auto prompt = [](uint64_t seed, size_t index) {
    const HttpTraffic traffic = {.chat = false, .prompt_words = 9, .seed = seed};
    return Json::parse(RequestBody(traffic, index))["prompt"].get<std::string>();
  };
  EXPECT_EQ(prompt(1, 1), prompt(1, 1));
  EXPECT_NE(prompt(1, 1), prompt(1, 2));
  EXPECT_NE(prompt(1, 1), prompt(2, 1));
  const std::string words = prompt(1, 1);
  EXPECT_EQ(std::count(words.begin(), words.end(), ' '), 8);
}

}  // namespace
}  // namespace tessera::cli

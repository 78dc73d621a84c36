#include "services/gateway/http_server.h"

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "services/common/field_error.h"
#include "services/gateway/http_answer.h"
#include "services/gateway/openai_error.h"

namespace tessera::gateway {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr size_t kReadBytes = 64 << 10;
constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);
// After an error answer the rest of what the client sends is read and dropped for this long, since
// closing at once would make its kernel throw the answer away.
constexpr absl::Duration kLingerMax = absl::Seconds(2);
constexpr SteadyTime kNever = SteadyTime::max();

SteadyTime After(absl::Duration duration) {
  return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(duration);
}

// `base`, and more for what is large.
absl::Duration TimeFor(size_t bytes, absl::Duration base, size_t bytes_per_second) {
  return base + absl::Seconds(bytes / std::max<size_t>(bytes_per_second, 1));
}

class Connection;

// What the connections of a server share.
struct Shared {
  HttpLimits limits;
  HttpHandler handler;
  HttpCounters counters;
  asio::io_context io{1};
  asio::thread_pool large_bodies{1};
  std::unordered_set<std::shared_ptr<Connection>> connections;  // io thread only
  bool draining = false;                                        // io thread only

  absl::Mutex mutex;
  size_t exchanges_running ABSL_GUARDED_BY(mutex) = 0;

  void CountExchange(int change) ABSL_LOCKS_EXCLUDED(mutex) {
    absl::MutexLock lock(&mutex);
    exchanges_running += static_cast<size_t>(change);
  }
};

// One client. All of it runs on the io thread. A read is always outstanding (but when a pipelining
// client is too far ahead), so that a client that goes away is noticed at once.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shared& shared, tcp::socket socket)
      : shared_(shared), socket_(std::move(socket)), buffer_(BufferMax(shared.limits)) {
    shared_.counters.connections_open.fetch_add(1, std::memory_order_relaxed);
  }
  ~Connection() { shared_.counters.connections_open.fetch_sub(1, std::memory_order_relaxed); }

  void Start() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::send_buffer_size(shared_.limits.socket_send_bytes),
                       ignored);
    NextRequest();
  }

  void Tick(SteadyTime now) {
    if (now < deadline_) return;
    deadline_ = kNever;
    if (lingering_ || (exchange_ == nullptr && !begun_)) return Shut();
    if (exchange_ == nullptr) {
      return Refuse(HttpError(408, "request_timeout", "the request did not arrive in time"));
    }
    shared_.counters.slow_readers_cut.fetch_add(1, std::memory_order_relaxed);
    Shut();
  }

  // The answer of the present exchange has more to send. `from` may be an older one.
  void Flush(const HttpAnswer* from) {
    if (writing_ || exchange_ == nullptr || exchange_.get() != from) return;
    out_.clear();
    const bool last = exchange_->Take(out_);
    if (out_.empty() && !last) return;
    writing_ = true;
    deadline_ = After(
        TimeFor(out_.size(), shared_.limits.write_max, shared_.limits.body_bytes_per_second_min));
    asio::async_write(socket_, asio::buffer(out_),
                      [self = shared_from_this(), last](error_code error, size_t) {
                        self->OnWritten(error, last);
                      });
  }

  // Answers a request that cannot be taken in, and closes the connection.
  void Refuse(const OpenAiError& problem) {
    HttpResponse response{.status = problem.http_status, .body = problem.body};
    if (problem.retry_after_s) {
      response.headers.emplace_back("retry-after", absl::StrCat(*problem.retry_after_s));
    }
    out_ = HttpText(response, /*keep_alive=*/false, /*with_body=*/true);
    deadline_ = After(shared_.limits.write_max);
    lingering_ = true;
    writing_ = true;
    asio::async_write(socket_, asio::buffer(out_),
                      [self = shared_from_this()](error_code error, size_t) {
                        if (self->shut_) return;
                        if (error) return self->Shut();
                        self->Linger();
                      });
    buffer_.consume(buffer_.size());
    Read();
  }

  bool idle() const { return exchange_ == nullptr && !begun_; }

  void Shut() {
    if (std::exchange(shut_, true)) return;
    error_code ignored;
    socket_.close(ignored);
    deadline_ = kNever;
    if (const auto exchange = std::exchange(exchange_, nullptr)) {
      exchange->Close(/*gone=*/true);
      shared_.CountExchange(-1);
    }
    shared_.connections.erase(shared_from_this());
  }

 private:
  using Parser = http::request_parser<http::string_body>;

  static size_t BufferMax(const HttpLimits& limits) {
    return limits.header_bytes_max + limits.pipeline_bytes_max + 2 * kReadBytes;
  }

  void NextRequest() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.limits.header_bytes_max));
    parser_->body_limit(shared_.limits.body_bytes_max);
    begun_ = false;
    header_done_ = false;
    deadline_ = After(shared_.limits.idle_max);
    Advance();
  }

  void Read() {
    if (reading_ || shut_) return;
    if (exchange_ != nullptr && buffer_.size() >= shared_.limits.pipeline_bytes_max) return;
    if (buffer_.size() + kReadBytes > buffer_.max_size()) {  // an endless chunk header
      return Refuse(HttpError(400, "malformed_request", "the request is not valid HTTP"));
    }
    reading_ = true;
    socket_.async_read_some(buffer_.prepare(kReadBytes),
                            [self = shared_from_this()](error_code error, size_t bytes) {
                              self->OnRead(error, bytes);
                            });
  }

  void OnRead(error_code error, size_t bytes) {
    reading_ = false;
    if (shut_) return;
    if (error) return Shut();  // gone; a half-closed client counts as gone, too
    shared_.counters.bytes_received.fetch_add(bytes, std::memory_order_relaxed);
    if (lingering_) return Read();  // into the same place, and never looked at
    buffer_.commit(bytes);
    if (exchange_ == nullptr) return Advance();
    Read();
  }

  // Feeds the parser with what is there, and begins the exchange when a request is complete.
  void Advance() {
    while (buffer_.size() > 0 && !parser_->is_done()) {
      if (!begun_) {
        begun_ = true;
        deadline_ = After(shared_.limits.header_max);
      }
      error_code error;
      const size_t used = parser_->put(buffer_.data(), error);
      buffer_.consume(used);
      if (error == http::error::need_more) break;
      if (error) return RefuseBroken(error);
      if (!header_done_ && parser_->is_header_done()) OnHeader();
    }
    if (!parser_->is_done()) return Read();
    Dispatch();
  }

  void OnHeader() {
    header_done_ = true;
    const auto length = parser_->content_length();
    deadline_ = After(TimeFor(length ? *length : shared_.limits.body_bytes_max,
                              shared_.limits.body_max, shared_.limits.body_bytes_per_second_min));
    if (!beast::iequals(parser_->get()[http::field::expect], "100-continue")) return;
    // Small and first on the wire; if it does not fit the socket's buffer the client goes on after
    // a second by itself.
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.write_some(asio::buffer(kContinue.data(), kContinue.size()), ignored);
  }

  void Dispatch() {
    auto message = parser_->release();
    HttpRequest request;
    const auto header = [&](auto name) {
      const auto value = message[name];
      return std::string(value.data(), value.size());
    };
    request.method = std::string(message.method_string().data(), message.method_string().size());
    request.path = std::string(message.target().data(), message.target().size());
    request.path.resize(std::min(request.path.find_first_of("?#"), request.path.size()));
    request.content_type = header(http::field::content_type);
    request.authorization = header(http::field::authorization);
    request.request_id = header("x-request-id");
    request.traceparent = header("traceparent");
    request.body = std::move(message.body());
    const bool keep_alive = message.keep_alive() && !shared_.draining;
    const bool chunked = message.version() >= 11;
    deadline_ = kNever;
    exchange_ = std::make_shared<HttpAnswer>(
        std::move(request), shared_.limits.stream_bytes_high, keep_alive, chunked,
        [self = shared_from_this()](std::shared_ptr<HttpAnswer> answer) {
          Connection& connection = *self;
          asio::post(connection.socket_.get_executor(),
                     [self, answer = std::move(answer)] { self->Flush(answer.get()); });
        });
    shared_.CountExchange(+1);
    Read();
    if (exchange_->request().body.size() <= kInlineBodyBytesMax) {
      shared_.handler(exchange_);
    } else {
      asio::post(shared_.large_bodies,
                 [exchange = exchange_, &handler = shared_.handler] { handler(exchange); });
    }
  }

  void OnWritten(error_code error, bool last) {
    writing_ = false;
    if (shut_) return;
    if (error) return Shut();
    shared_.counters.bytes_sent.fetch_add(out_.size(), std::memory_order_relaxed);
    deadline_ = kNever;
    const std::shared_ptr<HttpAnswer> exchange = exchange_;
    if (!last) {
      exchange->Written();
      return Flush(exchange.get());
    }
    const bool keep_alive = exchange->keep_alive() && !shared_.draining;
    exchange_ = nullptr;
    exchange->Close(/*gone=*/false);
    shared_.CountExchange(-1);
    if (!keep_alive) return Linger();
    NextRequest();
  }

  void RefuseBroken(error_code error) {
    shared_.counters.requests_malformed.fetch_add(1, std::memory_order_relaxed);
    if (error == http::error::body_limit) {
      Refuse(HttpError(413, "request_too_large",
                       absl::StrCat("the request body is larger than ",
                                    shared_.limits.body_bytes_max, " bytes")));
    } else if (error == http::error::header_limit) {
      Refuse(HttpError(431, "header_too_large",
                       absl::StrCat("the request header is larger than ",
                                    shared_.limits.header_bytes_max, " bytes")));
    } else {
      Refuse(HttpError(400, "malformed_request",
                       absl::StrCat("the request is not valid HTTP: ", error.message())));
    }
  }

  void Linger() {
    lingering_ = true;
    deadline_ = After(kLingerMax);
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    buffer_.consume(buffer_.size());
    Read();
  }

  Shared& shared_;
  tcp::socket socket_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::shared_ptr<HttpAnswer> exchange_;  // what is being answered
  std::string out_;                       // what is being written
  SteadyTime deadline_ = kNever;
  bool begun_ = false;        // a byte of the next request has come
  bool header_done_ = false;  // of the request being read
  bool reading_ = false;
  bool writing_ = false;
  bool lingering_ = false;
  bool shut_ = false;
};

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpLimits& limits, HttpHandler handler)
      : acceptor_(shared_.io), tick_(shared_.io), retry_(shared_.io) {
    shared_.limits = limits;
    shared_.handler = std::move(handler);
  }

  ~Impl() {
    if (!thread_.joinable()) return;
    asio::post(shared_.io, [this] {
      CloseAcceptor();
      const auto connections = shared_.connections;  // Shut takes each out of the set
      for (const auto& connection : connections) connection->Shut();
      shared_.io.stop();
    });
    thread_.join();
    shared_.large_bodies.join();
  }

  absl::Status Listen(const std::string& address) {
    const size_t colon = address.rfind(':');
    uint32_t port = 0;
    error_code error;
    asio::ip::address ip;
    if (colon != std::string::npos && absl::SimpleAtoi(address.substr(colon + 1), &port)) {
      std::string host = address.substr(0, colon);
      if (host == "localhost") host = "127.0.0.1";
      if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
      ip = asio::ip::make_address(host, error);
    } else {
      error = asio::error::invalid_argument;
    }
    if (error || port > 65535) {
      return services::InvalidField(
          "--listen", absl::StrCat("is \"", address,
                                   "\"; give HOST:PORT with a port from 0 to 65535, for instance "
                                   "127.0.0.1:8000"));
    }
    const tcp::endpoint endpoint(ip, static_cast<uint16_t>(port));
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return absl::FailedPreconditionError(
          absl::StrCat("--listen ", address, ": ", error.message(), "; give another port"));
    }
    address_ = absl::StrCat(address.substr(0, colon), ":", acceptor_.local_endpoint().port());
    return absl::OkStatus();
  }

  void Run() {
    Accept();
    Tick();
    thread_ = std::thread([this] { shared_.io.run(); });
  }

  size_t Drain(absl::Duration limit) {
    asio::post(shared_.io, [this] {
      shared_.draining = true;
      CloseAcceptor();
      const auto connections = shared_.connections;
      for (const auto& connection : connections) {
        if (connection->idle()) connection->Shut();
      }
    });
    const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(shared_.mutex) {
      return shared_.exchanges_running == 0;
    };
    absl::MutexLock lock(&shared_.mutex);
    shared_.mutex.AwaitWithTimeout(absl::Condition(&none), limit);
    return shared_.exchanges_running;
  }

  const std::string& address() const { return address_; }
  const HttpCounters& counters() const { return shared_.counters; }

 private:
  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (error) {  // out of file descriptors, most likely: try again when some were closed
        retry_.expires_after(kAcceptRetry);
        retry_.async_wait([this](error_code stopped) {
          if (!stopped && acceptor_.is_open()) Accept();
        });
        return;
      }
      Admit(std::move(socket));
      Accept();
    });
  }

  void Admit(tcp::socket socket) {
    const size_t open = shared_.connections.size();
    if (open >= 2 * shared_.limits.connections_max) {
      shared_.counters.connections_refused.fetch_add(1, std::memory_order_relaxed);
      return;  // closes it
    }
    const auto connection = std::make_shared<Connection>(shared_, std::move(socket));
    shared_.connections.insert(connection);
    if (open >= shared_.limits.connections_max) {
      shared_.counters.connections_refused.fetch_add(1, std::memory_order_relaxed);
      connection->Refuse(ErrorFor(absl::UnavailableError(absl::StrCat(
          "the limit of ", shared_.limits.connections_max, " connections is reached"))));
    } else {
      connection->Start();
    }
  }

  void Tick() {
    tick_.expires_after(kTick);
    tick_.async_wait([this](error_code stopped) {
      if (stopped) return;
      const SteadyTime now = std::chrono::steady_clock::now();
      std::vector<std::shared_ptr<Connection>> connections(shared_.connections.begin(),
                                                           shared_.connections.end());
      for (const auto& connection : connections) connection->Tick(now);
      Tick();
    });
  }

  void CloseAcceptor() {
    error_code ignored;
    acceptor_.close(ignored);
  }

  Shared shared_;
  tcp::acceptor acceptor_;
  asio::steady_timer tick_;
  asio::steady_timer retry_;
  std::string address_;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              const HttpLimits& limits,
                                                              HttpHandler handler) {
  auto impl = std::make_unique<Impl>(limits, std::move(handler));
  if (absl::Status listening = impl->Listen(address); !listening.ok()) return listening;
  impl->Run();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;
const std::string& HttpServer::address() const { return impl_->address(); }
const HttpCounters& HttpServer::counters() const { return impl_->counters(); }
size_t HttpServer::Drain(absl::Duration limit) { return impl_->Drain(limit); }

}  // namespace tessera::gateway

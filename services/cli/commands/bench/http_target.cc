#include "services/cli/commands/bench/http_target.h"

#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <limits>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/cli/commands/bench/openai_stream.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kFailureBodyBytesMax = 64 << 10;  // of an answer that is no stream

// Short words that most vocabularies hold as one token.
constexpr std::array<std::string_view, 24> kWords = {
    "the", "of", "and",  "to", "in",  "is", "for", "on",  "with", "as",  "by",  "at",
    "it",  "be", "from", "or", "are", "an", "was", "not", "all",  "one", "out", "up"};

struct Url {
  std::string host;
  std::string port;
  std::string prefix;
};

absl::StatusOr<Url> ParseUrl(const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  const auto bad = [&] {
    return services::InvalidField("--url",
                                  absl::StrCat("\"", text, "\" is not http://HOST[:PORT]"));
  };
  std::string_view rest = text;
  if (!rest.starts_with(kScheme)) return bad();
  rest.remove_prefix(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  Url url = {.host = {}, .port = "80", .prefix = std::string(rest.substr(slash))};
  while (url.prefix.ends_with('/')) url.prefix.pop_back();
  std::string_view authority = rest.substr(0, slash);
  const size_t bracket = authority.find(']');  // [::1]:8000
  const size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    url.port = authority.substr(colon + 1);
    authority = authority.substr(0, colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']')) {
    authority = authority.substr(1, authority.size() - 2);
  }
  url.host = authority;
  if (url.host.empty() || url.port.empty()) return bad();
  return url;
}

class Exchange;

// What the requests share. Used by the io thread only, once that runs.
struct Pool {
  asio::io_context io{1};
  std::vector<tcp::endpoint> endpoints;
  std::string host;    // the header's
  std::string target;  // the path
  absl::Duration timeout;
  std::vector<std::unique_ptr<beast::tcp_stream>> idle;
};

// One request and its answer. Lives by the handlers that hold it.
class Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Pool& pool, std::string body, TrafficEvents events)
      : pool_(pool), events_(std::move(events)) {
    request_.method(http::verb::post);
    request_.target(pool.target);
    request_.version(11);
    request_.set(http::field::host, pool.host);
    request_.set(http::field::content_type, "application/json");
    request_.set(http::field::accept, "text/event-stream");
    request_.body() = std::move(body);
    request_.prepare_payload();
  }

  void Begin() {
    if (pool_.idle.empty()) return Connect();
    stream_ = std::move(pool_.idle.back());
    pool_.idle.pop_back();
    reused_ = true;
    stream_->expires_after(absl::ToChronoNanoseconds(pool_.timeout));
    Write();
  }

 private:
  void Connect() {
    reused_ = false;
    buffer_.clear();
    stream_ = std::make_unique<beast::tcp_stream>(pool_.io);
    stream_->expires_after(absl::ToChronoNanoseconds(pool_.timeout));
    stream_->async_connect(pool_.endpoints,
                           [self = shared_from_this()](error_code ec, const tcp::endpoint&) {
                             if (ec) return self->Fail("connect", ec);
                             error_code ignored;
                             self->stream_->socket().set_option(tcp::no_delay(true), ignored);
                             self->Write();
                           });
  }

  void Write() {
    http::async_write(*stream_, request_, [self = shared_from_this()](error_code ec, size_t) {
      if (ec) return self->Lost(ec);
      self->ReadHeader();
    });
  }

  void ReadHeader() {
    parser_.emplace();
    // As good as none; Boost 1.74 takes boost::none for zero when a length is announced.
    parser_->body_limit(std::numeric_limits<uint64_t>::max());
    http::async_read_header(*stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code ec, size_t) {
                              if (ec) return self->Lost(ec);
                              self->ReadBody();
                            });
  }

  void ReadBody() {
    if (parser_->is_done()) return Finish();
    auto& body = parser_->get().body();
    body.data = chunk_.data();
    body.size = chunk_.size();
    http::async_read_some(
        *stream_, buffer_, *parser_, [self = shared_from_this()](error_code ec, size_t) {
          const size_t bytes = self->chunk_.size() - self->parser_->get().body().size;
          self->Take(std::string_view(self->chunk_.data(), bytes));
          if (ec && ec != http::error::need_buffer) return self->Fail("connection lost", ec);
          self->ReadBody();
        });
  }

  void Take(std::string_view bytes) {
    if (parser_->get().result() != http::status::ok) {
      failure_body_ += bytes.substr(0, kFailureBodyBytesMax - failure_body_.size());
      return;
    }
    if (const uint32_t tokens = answer_.Append(bytes); tokens > 0) events_.on_tokens(tokens);
  }

  void Finish() {
    const unsigned status = parser_->get().result_int();
    TrafficEnd end = status == 200 ? answer_.End() : HttpFailure(status, failure_body_);
    if (parser_->keep_alive()) {
      stream_->expires_never();
      pool_.idle.push_back(std::move(stream_));
    }
    events_.on_done(std::move(end));
  }

  // A kept connection may have been closed by the server in the meantime; that is no failure.
  void Lost(error_code ec) {
    if (reused_ && ec != beast::error::timeout) return Connect();
    Fail("connection lost", ec);
  }

  void Fail(const char* kind, error_code ec) {
    const bool late = ec == beast::error::timeout;
    events_.on_done({.error = late ? "timeout" : kind, .message = ec.message()});
  }

  Pool& pool_;
  TrafficEvents events_;
  http::request<http::string_body> request_;
  std::unique_ptr<beast::tcp_stream> stream_;
  bool reused_ = false;
  beast::flat_buffer buffer_;
  std::optional<http::response_parser<http::buffer_body>> parser_;
  std::array<char, kReadBytes> chunk_;
  OpenAiStream answer_;
  std::string failure_body_;
};

class HttpTarget final : public TrafficTarget {
 public:
  explicit HttpTarget(const HttpTraffic& traffic) : traffic_(traffic) {}
  ~HttpTarget() override {
    pool_.io.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Open() {
    const absl::StatusOr<Url> url = ParseUrl(traffic_.url);
    if (!url.ok()) return url.status();
    const auto nobody = [&](const error_code& ec) {
      return absl::UnavailableError(absl::StrCat("nothing answers at ", traffic_.url, " (",
                                                 ec.message(),
                                                 "); start a server with `tessera up`"));
    };
    error_code ec;
    tcp::resolver resolver(pool_.io);
    for (const auto& entry : resolver.resolve(url->host, url->port, ec)) {
      pool_.endpoints.push_back(entry.endpoint());
    }
    if (ec) return nobody(ec);
    tcp::socket probe(pool_.io);
    asio::connect(probe, pool_.endpoints, ec);
    if (ec) return nobody(ec);
    const bool v6 = url->host.find(':') != std::string::npos;
    pool_.host = absl::StrCat(v6 ? "[" : "", url->host, v6 ? "]" : "", ":", url->port);
    pool_.target =
        absl::StrCat(url->prefix, traffic_.chat ? "/v1/chat/completions" : "/v1/completions");
    pool_.timeout = traffic_.timeout;
    thread_ = std::thread([this] { pool_.io.run(); });
    return absl::OkStatus();
  }

  void Start(size_t index, TrafficEvents events) override {
    auto exchange =
        std::make_shared<Exchange>(pool_, RequestBody(traffic_, index), std::move(events));
    asio::post(pool_.io, [exchange = std::move(exchange)] { exchange->Begin(); });
  }

 private:
  const HttpTraffic traffic_;
  Pool pool_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{pool_.io.get_executor()};
  std::thread thread_;
};

}  // namespace

std::string RequestBody(const HttpTraffic& traffic, size_t index) {
  std::string prompt = traffic.prompt;
  if (prompt.empty()) {
    std::seed_seq seeds{static_cast<uint32_t>(traffic.seed),
                        static_cast<uint32_t>(traffic.seed >> 32), static_cast<uint32_t>(index)};
    std::mt19937 random(seeds);
    for (uint32_t i = 0; i < traffic.prompt_words; ++i) {
      if (i > 0) prompt += ' ';
      prompt += kWords[random() % kWords.size()];
    }
  }
  nlohmann::ordered_json body;
  if (!traffic.model.empty()) body["model"] = traffic.model;
  if (traffic.chat) {
    body["messages"] = {{{"role", "user"}, {"content", prompt}}};
  } else {
    body["prompt"] = prompt;
  }
  body["max_tokens"] = traffic.max_tokens;
  body["temperature"] = traffic.temperature;
  body["seed"] = (traffic.seed + index) & 0x7fffffff;  // what every server takes
  body["ignore_eos"] = traffic.ignore_eos;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}, {"continuous_usage_stats", true}};
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::StatusOr<std::unique_ptr<TrafficTarget>> MakeHttpTarget(const HttpTraffic& traffic) {
  auto target = std::make_unique<HttpTarget>(traffic);
  if (absl::Status s = target->Open(); !s.ok()) return s;
  return target;
}

}  // namespace tessera::cli

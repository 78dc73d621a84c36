#ifndef TESSERA_SERVICES_GATEWAY_HTTP_SERVER_H_
#define TESSERA_SERVICES_GATEWAY_HTTP_SERVER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/gateway/http_exchange.h"

namespace tessera::gateway {

// What a client may ask of the server, and how long it may take.
struct HttpLimits {
  size_t connections_max = 1'024;
  size_t header_bytes_max = 32 << 10;
  size_t body_bytes_max = size_t{32} << 20;
  // What a client sent beyond the request that is being answered (pipelining).
  size_t pipeline_bytes_max = 64 << 10;
  // A stream whose client is behind by more pauses its source.
  size_t stream_bytes_high = 64 << 10;
  // Between requests; from the first byte of a request to the end of its header; for a body, which
  // gets more time by its size.
  absl::Duration idle_max = absl::Seconds(75);
  absl::Duration header_max = absl::Seconds(10);
  absl::Duration body_max = absl::Seconds(30);
  // What one write (at most stream_bytes_high and a message) may take; longer ones get more time by
  // their size. A client that needs longer is cut.
  absl::Duration write_max = absl::Seconds(30);
  size_t body_bytes_per_second_min = 64 << 10;
  // The socket's send buffer; the kernel's own choice may grow to megabytes a connection.
  int socket_send_bytes = 256 << 10;
};

// Facts for metrics; read at any time.
struct HttpCounters {
  std::atomic<int64_t> connections_open{0};
  std::atomic<uint64_t> connections_refused{0};
  std::atomic<uint64_t> slow_readers_cut{0};
  std::atomic<uint64_t> requests_malformed{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<uint64_t> bytes_sent{0};
};

// Answers one request. Called on the server's thread, which must not be held up: requests with a
// body over kInlineBodyBytesMax come on a thread of their own instead.
using HttpHandler = std::function<void(std::shared_ptr<HttpExchange>)>;
inline constexpr size_t kInlineBodyBytesMax = 256 << 10;

// An HTTP/1.1 server: keep-alive, pipelining, chunked bodies, Expect: 100-continue, event streams.
// Errors that HTTP itself makes (malformed, too large, too slow) are answered here with an error
// body, then the connection is closed.
//
// Threads: one for all connections, one for large bodies.
class HttpServer final {
 public:
  // `address` is HOST:PORT; port 0 takes a free one.
  // Errors: kInvalidArgument for an address that is none, kFailedPrecondition when it is in use.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                           const HttpLimits& limits,
                                                           HttpHandler handler);
  // Closes everything; running exchanges hear on_gone.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // HOST:PORT that clients can use.
  const std::string& address() const;
  const HttpCounters& counters() const;
  // Takes no more connections, closes idle ones, and waits up to `limit` for the running exchanges.
  // Returns how many are left. New requests on open connections are answered, then closed.
  size_t Drain(absl::Duration limit);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_HTTP_SERVER_H_

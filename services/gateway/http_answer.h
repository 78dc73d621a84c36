#ifndef TESSERA_SERVICES_GATEWAY_HTTP_ANSWER_H_
#define TESSERA_SERVICES_GATEWAY_HTTP_ANSWER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "services/gateway/http_exchange.h"

namespace tessera::gateway {

// A whole response as it goes over the wire. `with_body` is false for HEAD.
std::string HttpText(const HttpResponse& response, bool keep_alive, bool with_body);

// The answer of one request, between its producer and the connection: the producer's side is the
// HttpExchange (any thread), the connection takes what is there and tells what became of it.
class HttpAnswer final : public HttpExchange, public std::enable_shared_from_this<HttpAnswer> {
 public:
  // Says to the connection that there is something to take. Called from the producer's thread.
  using Wake = std::function<void(std::shared_ptr<HttpAnswer>)>;

  // `stream_bytes_high`: more waiting than this is "behind". `chunked` is false for HTTP/1.0.
  HttpAnswer(HttpRequest request, size_t stream_bytes_high, bool keep_alive, bool chunked,
             Wake wake)
      : request_(std::move(request)),
        high_(stream_bytes_high),
        chunked_(chunked),
        keep_alive_(keep_alive),
        wake_(std::move(wake)) {}

  const HttpRequest& request() const override { return request_; }
  void SetEvents(Events events) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Respond(HttpResponse response) override ABSL_LOCKS_EXCLUDED(mutex_);
  void BeginStream(const HttpHeaders& headers) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool Write(std::string_view text) override ABSL_LOCKS_EXCLUDED(mutex_);
  void End() override ABSL_LOCKS_EXCLUDED(mutex_);

  // The connection's side, on its thread.

  // Moves what waits into `out` (empty before); true when that was the last of it.
  bool Take(std::string& out) ABSL_LOCKS_EXCLUDED(mutex_);
  // Everything taken has been written.
  void Written() ABSL_LOCKS_EXCLUDED(mutex_);
  // The connection has sent all of it, or (`gone`) will send no more of it. No event comes after.
  void Close(bool gone) ABSL_LOCKS_EXCLUDED(mutex_);
  bool keep_alive() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void CallWake() ABSL_LOCKS_EXCLUDED(mutex_);

  const HttpRequest request_;
  const size_t high_;
  const bool chunked_;
  mutable absl::Mutex mutex_;
  bool keep_alive_ ABSL_GUARDED_BY(mutex_);
  Wake wake_ ABSL_GUARDED_BY(mutex_);  // null once closed
  Events events_ ABSL_GUARDED_BY(mutex_);
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  bool streaming_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool taken_all_ ABSL_GUARDED_BY(mutex_) = false;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;
  bool behind_ ABSL_GUARDED_BY(mutex_) = false;
  bool wake_posted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_HTTP_ANSWER_H_

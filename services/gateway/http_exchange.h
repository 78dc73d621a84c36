#ifndef TESSERA_SERVICES_GATEWAY_HTTP_EXCHANGE_H_
#define TESSERA_SERVICES_GATEWAY_HTTP_EXCHANGE_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::gateway {

// One request, as it came. Header values are empty when the header was not there.
struct HttpRequest {
  std::string method;  // "GET", "POST", ... in capitals
  std::string path;    // without the query
  std::string content_type;
  std::string authorization;
  std::string request_id;
  std::string traceparent;
  std::string body;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;
  std::string body;
};

// A request and the place for its answer: either one Respond, or BeginStream, Writes and End.
// What comes after the answer's end, or after the client has gone, is dropped.
//
// Threading: any thread; writes of one exchange from one thread at a time. Events come on the
// server's thread (on_gone also from inside SetEvents) and must not block.
class HttpExchange {
 public:
  struct Events {
    // The client has gone, or was cut because it reads too slowly. At most once, never after the
    // answer has left completely.
    std::function<void()> on_gone;
    // After a Write said false: there is room again.
    std::function<void()> on_writable;
  };

  virtual ~HttpExchange() = default;
  virtual const HttpRequest& request() const = 0;
  virtual void SetEvents(Events events) = 0;
  virtual void Respond(HttpResponse response) = 0;
  // Answers 200 and begins an event stream.
  virtual void BeginStream(const HttpHeaders& headers) = 0;
  // False: the client is behind by more than the limit. The text is taken all the same, but the
  // caller should pause its source until on_writable.
  virtual bool Write(std::string_view text) = 0;
  virtual void End() = 0;
};

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_HTTP_EXCHANGE_H_

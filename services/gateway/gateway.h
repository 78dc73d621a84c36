#ifndef TESSERA_SERVICES_GATEWAY_GATEWAY_H_
#define TESSERA_SERVICES_GATEWAY_GATEWAY_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "prometheus/registry.h"
#include "services/clients/parser_client.h"
#include "services/common/clock.h"
#include "services/common/log.h"
#include "services/common/request_id.h"
#include "services/gateway/gateway_metrics.h"
#include "services/gateway/http_exchange.h"
#include "services/gateway/http_server.h"
#include "services/gateway/model_watch.h"
#include "services/gateway/reply.h"
#include "services/gateway/reply_format.h"

namespace tessera::gateway {

// The endpoints, over the parser's client:
//   POST /v1/chat/completions, /v1/completions   OpenAI's, whole and streamed
//   POST /parse/reasoning, /parse/function_call  given text, parsed
//   GET  /v1/models, /v1/models/NAME             the served model
//   GET  /health                                 200 while a request would be served, else 503
//   GET  /live                                   200 while the process runs
//   GET  /metrics, /version
// Everything else is refused with an OpenAI error body: 404 for paths, 405 for methods.
//
// Ownership: borrows all it is given. The destructor waits for the last reply, so destroy the HTTP
// server first: that cancels what is under way. Threading: Handle from any thread.
class Gateway final {
 public:
  struct Parts {
    services::ParserClient& parser;
    const services::Logger& log;
    const services::Clock& clock;
    services::RequestIds& ids;
    prometheus::Registry& registry;
    ReasoningField reasoning_field = ReasoningField::kBoth;
    std::function<void(bool serving)> serving_changed;
  };

  explicit Gateway(Parts parts);
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // Where /metrics finds what the server counts; before the first request.
  void SetServer(const HttpServer* server) { server_ = server; }
  void Handle(std::shared_ptr<HttpExchange> exchange);
  // /health says 503 from now on.
  void Drain() { draining_ = true; }

 private:
  bool Serving() const { return watch_.serving() && !draining_; }
  void AnswerHealth(HttpExchange& exchange) const;
  void AnswerMetrics(HttpExchange& exchange);
  void AnswerModels(Reply& reply, std::string_view name) const;

  const Parts parts_;
  GatewayMetrics metrics_;
  RunningReplies running_;
  std::atomic<const HttpServer*> server_ = nullptr;
  std::atomic<bool> draining_ = false;
  ModelWatch watch_;  // last: its callback uses the members above
};

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_GATEWAY_H_

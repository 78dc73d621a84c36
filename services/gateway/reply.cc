#include "services/gateway/reply.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/status_map.h"
#include "services/gateway/reply_format.h"

namespace tessera::gateway {
namespace {

services::CallContext ContextOf(const HttpRequest& request, services::RequestIds& ids) {
  services::CallContext context;
  context.request_id =
      services::IsUsableRequestId(request.request_id) ? request.request_id : ids.Next();
  if (services::IsTraceparent(request.traceparent)) context.traceparent = request.traceparent;
  if (request.authorization.size() <= services::kAuthorizationBytesMax) {
    context.authorization = request.authorization;
  }
  return context;
}

}  // namespace

Reply::Reply(std::shared_ptr<HttpExchange> exchange, std::string_view endpoint,
             Vocabulary vocabulary, const ReplyTools& tools)
    : exchange_(std::move(exchange)),
      endpoint_(endpoint),
      vocabulary_(vocabulary),
      tools_(tools),
      began_(tools.clock.Monotonic()),
      arrived_(tools.clock.Wall()),
      context_(ContextOf(exchange_->request(), tools.ids)) {
  tools_.running.Begin();
}

Reply::~Reply() {
  // Every path answers; one that forgot would leave its client waiting for ever.
  if (!ended_) Fail(absl::InternalError("the request ended without an answer"));
  tools_.running.End();
}

void Reply::Respond(HttpResponse response) {
  response.headers.emplace_back("x-request-id", context_.request_id);
  const int status = response.status;
  exchange_->Respond(std::move(response));
  Account(status);
}

void Reply::Json(std::string body, int http_status) {
  if (std::exchange(ended_, true)) return;
  Respond({.status = http_status, .body = std::move(body)});
}

void Reply::Refuse(const OpenAiError& error, HttpHeaders headers) {
  if (std::exchange(ended_, true)) return;
  if (error.retry_after_s.has_value()) {
    headers.emplace_back("retry-after", absl::StrCat(*error.retry_after_s));
  }
  Respond({.status = error.http_status, .headers = std::move(headers), .body = error.body});
}

void Reply::Fail(const absl::Status& status) {
  const OpenAiError error = ErrorFor(InClientWords(status, vocabulary_));
  if (!streaming_) return Refuse(error);
  if (std::exchange(ended_, true)) return;
  exchange_->Write(ErrorEvent(error.body));
  exchange_->End();
  tools_.metrics.StreamClosed();
  Account(error.http_status);
}

bool Reply::Write(std::string_view events) {
  if (ended_) return true;
  if (!streaming_) {
    streaming_ = true;
    tools_.metrics.StreamOpened();
    tools_.metrics.FirstEvent(endpoint_, tools_.clock.Monotonic() - began_);
    exchange_->BeginStream({{"x-request-id", context_.request_id}});
  }
  return exchange_->Write(events);
}

void Reply::End() {
  if (std::exchange(ended_, true)) return;
  exchange_->End();
  tools_.metrics.StreamClosed();
  Account(200);
}

void Reply::Account(int http_status) {
  const absl::Duration took = tools_.clock.Monotonic() - began_;
  tools_.metrics.RequestEnded(endpoint_, http_status, took);
  tools_.log.Info("request ended", {{"request_id", context_.request_id},
                                    {"endpoint", endpoint_},
                                    {"status", http_status},
                                    {"streamed", streaming_},
                                    {"seconds", absl::ToDoubleSeconds(took)}});
}

}  // namespace tessera::gateway

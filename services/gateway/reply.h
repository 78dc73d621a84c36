#ifndef TESSERA_SERVICES_GATEWAY_REPLY_H_
#define TESSERA_SERVICES_GATEWAY_REPLY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "services/common/call_context.h"
#include "services/common/clock.h"
#include "services/common/log.h"
#include "services/common/request_id.h"
#include "services/gateway/gateway_metrics.h"
#include "services/gateway/http_exchange.h"
#include "services/gateway/openai_error.h"

namespace tessera::gateway {

// Counts the replies that live, so that what they borrow can outlive them. Threading: any thread.
class RunningReplies final {
 public:
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ++count_;
  }
  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    --count_;
  }
  void AwaitNone() ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ == 0; };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&none));
  }

 private:
  absl::Mutex mutex_;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// What every request uses. Borrowed; outlives the last Reply.
struct ReplyTools {
  const services::Logger& log;
  const services::Clock& clock;
  services::RequestIds& ids;
  GatewayMetrics& metrics;
  RunningReplies& running;
};

// The answer to one request, in the words of an OpenAI client: whole, or as an event stream whose
// header goes out with its first event, so that an error before it still has its HTTP status.
// Counts and logs the request, once, when it has been answered (or the client has gone).
//
// Ownership: shared by the events of the exchange and of the call below.
// Threading: any thread; Write, End, Json and Fail from one at a time.
class Reply final {
 public:
  Reply(std::shared_ptr<HttpExchange> exchange, std::string_view endpoint, Vocabulary vocabulary,
        const ReplyTools& tools);
  ~Reply();
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  const HttpRequest& request() const { return exchange_->request(); }
  // What travels down the chain.
  const services::CallContext& context() const { return context_; }
  absl::Time arrived() const { return arrived_; }

  // `on_gone`: cancel what is under way. `on_writable`: resume it.
  void SetEvents(HttpExchange::Events events) { exchange_->SetEvents(std::move(events)); }

  // A whole answer. `status` 200 with a JSON body, unless told otherwise.
  void Json(std::string body, int http_status = 200);
  // An error of a layer below, or of this one: an error body, or an error event once streaming.
  void Fail(const absl::Status& status);
  // Something that HTTP itself refuses.
  void Refuse(const OpenAiError& error, HttpHeaders headers = {});
  // Events of a stream. False: pause the source until on_writable.
  bool Write(std::string_view events);
  void End();

  bool streaming() const { return streaming_; }

 private:
  void Respond(HttpResponse response);
  void Account(int http_status);

  const std::shared_ptr<HttpExchange> exchange_;
  const std::string_view endpoint_;
  const Vocabulary vocabulary_;
  const ReplyTools tools_;
  const absl::Duration began_;
  const absl::Time arrived_;
  services::CallContext context_;
  bool streaming_ = false;
  bool ended_ = false;
};

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_REPLY_H_

#ifndef TESSERA_SERVICES_GATEWAY_GATEWAY_METRICS_H_
#define TESSERA_SERVICES_GATEWAY_GATEWAY_METRICS_H_

#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "prometheus/registry.h"
#include "services/common/metrics.h"
#include "services/gateway/http_server.h"

namespace tessera::gateway {

// The metrics of the gateway process. Threading: any thread.
class GatewayMetrics final {
 public:
  explicit GatewayMetrics(prometheus::Registry& registry);

  // One finished request. `endpoint` is a name of ours ("chat"), never the client's path.
  void RequestEnded(std::string_view endpoint, int http_status, absl::Duration took);
  void StreamOpened();
  void StreamClosed();
  // From the request's arrival to its first event.
  void FirstEvent(std::string_view endpoint, absl::Duration took);
  // Brings what the server counts by itself up to date; called before each scrape.
  void Update(const HttpCounters& counters) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  services::Metrics metrics_;
  absl::Mutex mutex_;
  // What Update has published so far.
  uint64_t connections_refused_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t slow_readers_cut_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t requests_malformed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_received_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_sent_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_GATEWAY_METRICS_H_

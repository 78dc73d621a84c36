#include "services/gateway/gateway_metrics.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

namespace tessera::gateway {
namespace {

enum Row : size_t {
  kRequests,
  kRequestSeconds,
  kFirstEventSeconds,
  kStreamsOpen,
  kConnectionsOpen,
  kConnectionsRefused,
  kSlowReadersCut,
  kRequestsMalformed,
  kBytesReceived,
  kBytesSent,
};

const std::vector<services::MetricRow>& Table() {
  using services::MetricType;
  static const auto* const table = new std::vector<services::MetricRow>{
      {"tessera_gateway_requests_total",
       MetricType::kCounter,
       "Requests by endpoint and HTTP status; 499 is a client that went away.",
       {"endpoint", "code"}},
      {"tessera_gateway_request_seconds",
       MetricType::kHistogram,
       "Duration of whole requests.",
       {"endpoint"},
       services::kRequestSecondsBuckets},
      {"tessera_gateway_time_to_first_event_seconds",
       MetricType::kHistogram,
       "From a streamed request's arrival to its first event with output.",
       {"endpoint"},
       services::kTimeToFirstTokenBuckets},
      {"tessera_gateway_streams_open", MetricType::kGauge, "Event streams under way."},
      {"tessera_gateway_connections_open", MetricType::kGauge, "Open client connections."},
      {"tessera_gateway_connections_refused_total", MetricType::kCounter,
       "Connections over the limit."},
      {"tessera_gateway_slow_readers_cut_total", MetricType::kCounter,
       "Clients cut because they read too slowly."},
      {"tessera_gateway_requests_malformed_total", MetricType::kCounter,
       "Requests that were no valid HTTP, or too large."},
      {"tessera_gateway_received_bytes_total", MetricType::kCounter, "Bytes read from clients."},
      {"tessera_gateway_sent_bytes_total", MetricType::kCounter, "Bytes sent to clients."},
  };
  return *table;
}

}  // namespace

GatewayMetrics::GatewayMetrics(prometheus::Registry& registry) : metrics_(registry, Table()) {}

void GatewayMetrics::RequestEnded(std::string_view endpoint, int http_status, absl::Duration took) {
  metrics_.CounterOf(kRequests, {endpoint, std::to_string(http_status)}).Increment();
  metrics_.HistogramOf(kRequestSeconds, {endpoint}).Observe(absl::ToDoubleSeconds(took));
}

void GatewayMetrics::StreamOpened() { metrics_.GaugeOf(kStreamsOpen).Increment(); }
void GatewayMetrics::StreamClosed() { metrics_.GaugeOf(kStreamsOpen).Decrement(); }

void GatewayMetrics::FirstEvent(std::string_view endpoint, absl::Duration took) {
  metrics_.HistogramOf(kFirstEventSeconds, {endpoint}).Observe(absl::ToDoubleSeconds(took));
}

void GatewayMetrics::Update(const HttpCounters& counters) {
  absl::MutexLock lock(&mutex_);
  metrics_.GaugeOf(kConnectionsOpen).Set(static_cast<double>(counters.connections_open.load()));
  const auto advance = [this](Row row, const std::atomic<uint64_t>& now, uint64_t& published) {
    const uint64_t before = std::exchange(published, now.load());
    metrics_.CounterOf(row).Increment(static_cast<double>(published - before));
  };
  advance(kConnectionsRefused, counters.connections_refused, connections_refused_);
  advance(kSlowReadersCut, counters.slow_readers_cut, slow_readers_cut_);
  advance(kRequestsMalformed, counters.requests_malformed, requests_malformed_);
  advance(kBytesReceived, counters.bytes_received, bytes_received_);
  advance(kBytesSent, counters.bytes_sent, bytes_sent_);
}

}  // namespace tessera::gateway

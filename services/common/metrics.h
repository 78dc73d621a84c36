#ifndef TESSERA_SERVICES_COMMON_METRICS_H_
#define TESSERA_SERVICES_COMMON_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace tessera::services {

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram };

// Upper bounds of histogram buckets: those of vLLM, which stock dashboards expect, with finer ones
// added below, since one token of a fast engine takes single milliseconds.
extern const std::vector<double> kTimeToFirstTokenBuckets;  // seconds
extern const std::vector<double> kInterTokenBuckets;        // seconds, also time per output token
extern const std::vector<double> kRequestSecondsBuckets;    // whole requests and their phases
extern const std::vector<double> kRpcSecondsBuckets;        // short unary calls
// 1, 2, 5, 10, ... up to `tokens_max`.
std::vector<double> TokenCountBuckets(uint64_t tokens_max);

// One metric of a process. The rows of a process form its table, which its README prints.
//   name    as on the wire; counters end in _total, times in _seconds, sizes in _bytes
//   labels  names, in the order in which values are given
struct MetricRow {
  std::string_view name;
  MetricType type;
  std::string_view help;
  std::vector<std::string_view> labels = {};
  // Histograms only.
  std::vector<double> buckets = {};
};

// The live metrics behind a table. A row's index in the table names it: keep an enum beside the
// table. `common` labels (for instance {"model_name", ...}) are on every series.
//
// Threading: any thread. Cost: looking a series up takes a lock and a map; keep the reference for
// anything done per token. References live as long as the registry.
// Errors: a broken row (bad name, type that does not fit, labels that do not match) is our own bug
// and ends the process at start.
class Metrics final {
 public:
  Metrics(prometheus::Registry& registry, absl::Span<const MetricRow> table,
          const prometheus::Labels& common = {});

  prometheus::Counter& CounterOf(size_t row, std::initializer_list<std::string_view> labels = {});
  prometheus::Gauge& GaugeOf(size_t row, std::initializer_list<std::string_view> labels = {});
  prometheus::Histogram& HistogramOf(size_t row,
                                     std::initializer_list<std::string_view> labels = {});

 private:
  struct Series {
    MetricRow row;
    std::variant<prometheus::Family<prometheus::Counter>*, prometheus::Family<prometheus::Gauge>*,
                 prometheus::Family<prometheus::Histogram>*>
        family;
  };
  prometheus::Labels LabelsOf(const MetricRow& row,
                              std::initializer_list<std::string_view> values) const;

  std::vector<Series> series_;
};

// The registry's content in Prometheus text form: for a process that serves /metrics by itself.
std::string MetricsText(const prometheus::Registry& registry);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_METRICS_H_

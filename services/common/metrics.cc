#include "services/common/metrics.h"

#include "absl/base/internal/raw_logging.h"
#include "prometheus/check_names.h"
#include "prometheus/text_serializer.h"

namespace tessera::services {

const std::vector<double> kTimeToFirstTokenBuckets = {
    .001, .002, .004, .006, .008, .01, .015, .02, .03, .04, .06, .08, .1,  .15,
    .25,  .5,   .75,  1,    2.5,  5,   7.5,  10,  20,  40,  80,  160, 640, 2560};
const std::vector<double> kInterTokenBuckets = {
    .0005, .001, .002, .003, .004, .006, .008, .01, .0125, .015, .02, .025, .035, .05, .075,
    .1,    .15,  .2,   .3,   .4,   .5,   .75,  1,   2.5,   5,    7.5, 10,   20,   40,  80};
const std::vector<double> kRequestSecondsBuckets = {
    .005, .01, .025, .05, .1, .2, .3, .5,  .8,  1,   1.5, 2,    2.5, 5,
    10,   15,  20,   30,  40, 50, 60, 120, 240, 480, 960, 1920, 7680};
const std::vector<double> kRpcSecondsBuckets = {.0001, .00025, .0005, .001, .0025, .005, .01, .025,
                                                .05,   .1,     .25,   .5,   1,     2.5,  5,   10};

std::vector<double> TokenCountBuckets(uint64_t tokens_max) {
  std::vector<double> buckets;
  constexpr uint64_t kDecadesEnd = uint64_t{1} << 40;
  for (uint64_t decade = 1; decade <= tokens_max && decade < kDecadesEnd; decade *= 10) {
    for (const uint64_t step : {1, 2, 5}) {
      if (step * decade <= tokens_max) buckets.push_back(static_cast<double>(step * decade));
    }
  }
  return buckets;
}

Metrics::Metrics(prometheus::Registry& registry, absl::Span<const MetricRow> table,
                 const prometheus::Labels& common) {
  for (const MetricRow& row : table) {
    const std::string name(row.name);
    const std::string help(row.help);
    const bool is_total = row.name.ends_with("_total");
    ABSL_RAW_CHECK(prometheus::CheckMetricName(name), "metric name is not legal");
    // vLLM has a histogram that ends so (vllm:iteration_tokens_total); dashboards know its name.
    ABSL_RAW_CHECK(
        row.type == MetricType::kHistogram || is_total == (row.type == MetricType::kCounter),
        "counters, and no gauges, end in _total");
    ABSL_RAW_CHECK(row.buckets.empty() == (row.type != MetricType::kHistogram),
                   "histograms, and only they, have buckets");
    Series series{.row = row, .family = {}};
    switch (row.type) {
      case MetricType::kCounter:
        series.family =
            &prometheus::BuildCounter().Name(name).Help(help).Labels(common).Register(registry);
        break;
      case MetricType::kGauge:
        series.family =
            &prometheus::BuildGauge().Name(name).Help(help).Labels(common).Register(registry);
        break;
      case MetricType::kHistogram:
        series.family =
            &prometheus::BuildHistogram().Name(name).Help(help).Labels(common).Register(registry);
        break;
    }
    series_.push_back(std::move(series));
  }
}

prometheus::Labels Metrics::LabelsOf(const MetricRow& row,
                                     std::initializer_list<std::string_view> values) const {
  ABSL_RAW_CHECK(row.labels.size() == values.size(), "one value for each label of the row");
  prometheus::Labels labels;
  size_t index = 0;
  for (const std::string_view value : values) labels.emplace(row.labels[index++], value);
  return labels;
}

prometheus::Counter& Metrics::CounterOf(size_t row,
                                        std::initializer_list<std::string_view> labels) {
  Series& series = series_.at(row);
  auto** family = std::get_if<prometheus::Family<prometheus::Counter>*>(&series.family);
  ABSL_RAW_CHECK(family != nullptr, "row is no counter");
  return (*family)->Add(LabelsOf(series.row, labels));
}

prometheus::Gauge& Metrics::GaugeOf(size_t row, std::initializer_list<std::string_view> labels) {
  Series& series = series_.at(row);
  auto** family = std::get_if<prometheus::Family<prometheus::Gauge>*>(&series.family);
  ABSL_RAW_CHECK(family != nullptr, "row is no gauge");
  return (*family)->Add(LabelsOf(series.row, labels));
}

prometheus::Histogram& Metrics::HistogramOf(size_t row,
                                            std::initializer_list<std::string_view> labels) {
  Series& series = series_.at(row);
  auto** family = std::get_if<prometheus::Family<prometheus::Histogram>*>(&series.family);
  ABSL_RAW_CHECK(family != nullptr, "row is no histogram");
  return (*family)->Add(LabelsOf(series.row, labels), series.row.buckets);
}

std::string MetricsText(const prometheus::Registry& registry) {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

}  // namespace tessera::services

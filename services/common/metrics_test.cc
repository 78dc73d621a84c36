#include "services/common/metrics.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace tessera::services {
namespace {

enum Row : size_t { kRequests, kOpen, kSeconds };

std::vector<MetricRow> Table() {
  return {
      {"tessera_requests_total", MetricType::kCounter, "Requests.", {"method", "code"}},
      {"tessera_streams_open", MetricType::kGauge, "Open streams."},
      {"tessera_request_seconds", MetricType::kHistogram, "Latency.", {"method"}, {.1, 1}},
  };
}

TEST(Metrics, ATableBecomesSeriesWithItsLabelsAndTheCommonOnes) {
  prometheus::Registry registry;
  const std::vector<MetricRow> table = Table();
  Metrics metrics(registry, table, {{"model_name", "demo"}});
  metrics.CounterOf(kRequests, {"Generate", "OK"}).Increment(3);
  metrics.CounterOf(kRequests, {"Generate", "OK"}).Increment();
  metrics.GaugeOf(kOpen).Set(2);
  metrics.HistogramOf(kSeconds, {"Generate"}).Observe(.5);
  const std::string text = MetricsText(registry);
  EXPECT_NE(text.find("tessera_requests_total{model_name=\"demo\",code=\"OK\",method=\"Generate\"} "
                      "4"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("# HELP tessera_streams_open Open streams."), std::string::npos);
  EXPECT_NE(text.find("le=\"0.1\"} 0"), std::string::npos);
  EXPECT_NE(text.find("le=\"1\"} 1"), std::string::npos);
}

TEST(MetricsDeathTest, ABrokenRowEndsTheProcessAtStart) {
  prometheus::Registry registry;
  const std::vector<MetricRow> no_total = {{"requests", MetricType::kCounter, "x"}};
  EXPECT_DEATH(Metrics(registry, no_total), "_total");
  const std::vector<MetricRow> no_buckets = {{"x_seconds", MetricType::kHistogram, "x"}};
  EXPECT_DEATH(Metrics(registry, no_buckets), "buckets");
  const std::vector<MetricRow> table = Table();
  Metrics metrics(registry, table);
  EXPECT_DEATH(metrics.CounterOf(kRequests, {"only one"}), "label");
  EXPECT_DEATH(metrics.GaugeOf(kRequests, {"a", "b"}), "no gauge");
}

TEST(Metrics, BucketsRiseAndKeepTheDashboardsBounds) {
  for (const std::vector<double>* buckets : {&kTimeToFirstTokenBuckets, &kInterTokenBuckets,
                                             &kRequestSecondsBuckets, &kRpcSecondsBuckets}) {
    EXPECT_TRUE(std::is_sorted(buckets->begin(), buckets->end()));
  }
  for (const double bound : {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1., 80.}) {
    EXPECT_TRUE(std::count(kInterTokenBuckets.begin(), kInterTokenBuckets.end(), bound)) << bound;
  }
  EXPECT_EQ(TokenCountBuckets(60), (std::vector<double>{1, 2, 5, 10, 20, 50}));
}

}  // namespace
}  // namespace tessera::services

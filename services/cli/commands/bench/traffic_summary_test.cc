#include "services/cli/commands/bench/traffic_summary.h"

#include <numeric>

#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

absl::Duration Ms(int64_t ms) { return absl::Milliseconds(ms); }

TEST(DistributionOf, PercentilesAreSamplesOfNearestRank) {
  std::vector<double> samples(100);
  std::iota(samples.rbegin(), samples.rend(), 1);  // 100 ... 1
  const Distribution d = DistributionOf(samples);
  EXPECT_EQ(d.count, 100u);
  EXPECT_DOUBLE_EQ(d.mean, 50.5);
  EXPECT_EQ(d.p50, 50);
  EXPECT_EQ(d.p90, 90);
  EXPECT_EQ(d.p99, 99);
  EXPECT_EQ(d.max, 100);
  EXPECT_EQ(DistributionOf({7, 3}).p50, 3);
  EXPECT_EQ(DistributionOf({7, 3}).p99, 7);
}

TEST(DistributionOf, BucketsHoldEverySampleAndOneStragglerDoesNotStretchThem) {
  std::vector<double> samples;
  for (int i = 0; i < 1000; ++i) samples.push_back(10 + i % 10);
  samples.push_back(1e6);
  const Distribution d = DistributionOf(samples);
  ASSERT_EQ(d.buckets.size(), kHistogramBuckets);
  EXPECT_EQ(d.bucket_begin, 10);
  EXPECT_NEAR(d.bucket_width, 0.9, 1e-9);
  EXPECT_EQ(std::accumulate(d.buckets.begin(), d.buckets.end(), size_t{0}), samples.size());
  EXPECT_EQ(d.buckets.front(), 100u);
}

TEST(DistributionOf, NoSampleAndOneSampleAreNoTrouble) {
  EXPECT_EQ(DistributionOf({}).count, 0u);
  EXPECT_TRUE(DistributionOf({}).buckets.empty());
  EXPECT_EQ(DistributionOf({4, 4, 4}).buckets, std::vector<size_t>{3});
}

// Sent at 1 s, tokens at +100, +110 and (two together) +130 ms.
RequestRecord Good() {
  return {.sent = Ms(1000),
          .ended = Ms(1200),
          .arrivals = {{Ms(1100), 1}, {Ms(1110), 1}, {Ms(1130), 2}},
          .prompt_tokens = 5,
          .output_tokens = 4};
}

TEST(Summarize, TimesAreMeasuredFromTheSendingAndBetweenTokens) {
  const TrafficSummary s = Summarize({Good()}, {});
  EXPECT_EQ(s.requests, 1u);
  EXPECT_EQ(s.failed, 0u);
  EXPECT_DOUBLE_EQ(s.seconds, 0.2);
  EXPECT_EQ(s.prompt_tokens, 5u);
  EXPECT_EQ(s.output_tokens, 4u);
  EXPECT_DOUBLE_EQ(s.output_tokens_per_s, 20);
  EXPECT_DOUBLE_EQ(s.requests_per_s, 5);
  EXPECT_DOUBLE_EQ(s.first_token.p50, 100);
  EXPECT_DOUBLE_EQ(s.whole.p50, 200);
  EXPECT_EQ(s.inter_token.count, 3u);  // 10, and 20 ms shared by two tokens
  EXPECT_DOUBLE_EQ(s.inter_token.mean, 10);
}

TEST(Summarize, TheTimelineAddsUpToTheTokens) {
  const TrafficSummary s = Summarize({Good()}, {});
  ASSERT_EQ(s.timeline.size(), kTimelineSlots);
  const double slot_s = s.seconds / kTimelineSlots;
  EXPECT_NEAR(std::accumulate(s.timeline.begin(), s.timeline.end(), 0.0) * slot_s, 4, 1e-9);
  EXPECT_EQ(s.timeline[0], 0);
}

TEST(Summarize, FailedRequestsAreCountedByKindAndKeepTheirTokens) {
  RequestRecord cut = Good();
  cut.error = "cut";
  cut.message = "the stream ended early";
  RequestRecord refused = {
      .sent = Ms(1000), .ended = Ms(1001), .error = "HTTP 429", .message = "full"};
  const TrafficSummary s = Summarize({Good(), cut, refused, refused}, {});
  EXPECT_EQ(s.failed, 3u);
  EXPECT_EQ(s.errors, (std::map<std::string, size_t>{{"cut", 1}, {"HTTP 429", 2}}));
  EXPECT_EQ(s.first_error, "the stream ended early");
  EXPECT_EQ(s.output_tokens, 8u);
  EXPECT_EQ(s.whole.count, 1u);
  EXPECT_EQ(s.first_token.count, 2u);
  EXPECT_DOUBLE_EQ(s.requests_per_s, 5);
}

TEST(Summarize, GoodRequestsKeepBothLimits) {
  const auto good = [](const RequestRecord& record, int first_ms, int inter_ms) {
    return Summarize({record}, {.first_token = Ms(first_ms), .inter_token = Ms(inter_ms)}).good;
  };
  EXPECT_EQ(good(Good(), 100, 10), 1u);
  EXPECT_EQ(good(Good(), 99, 10), 0u);
  EXPECT_EQ(good(Good(), 100, 9), 0u);
  RequestRecord failed = Good();
  failed.error = "cut";
  EXPECT_EQ(good(failed, 100, 10), 0u);
  RequestRecord silent = Good();
  silent.arrivals.clear();
  EXPECT_EQ(good(silent, 100, 10), 0u);
}

TEST(Summarize, NothingIsNoTrouble) {
  EXPECT_EQ(Summarize({}, {}).requests, 0u);
  EXPECT_EQ(Summarize({RequestRecord{}}, {}).output_tokens_per_s, 0);
}

}  // namespace
}  // namespace tessera::cli

#include "services/cli/commands/bench/traffic_summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tessera::cli {
namespace {

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

double NearestRank(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

void FillBuckets(const std::vector<double>& sorted, Distribution& out) {
  out.bucket_begin = sorted.front();
  out.bucket_width = (out.p99 - out.bucket_begin) / kHistogramBuckets;
  if (out.bucket_width <= 0) {  // all alike: one bar says it
    out.buckets = {sorted.size()};
    return;
  }
  out.buckets.assign(kHistogramBuckets, 0);
  for (const double sample : sorted) {
    const auto bucket = static_cast<size_t>((sample - out.bucket_begin) / out.bucket_width);
    ++out.buckets[std::min(bucket, kHistogramBuckets - 1)];
  }
}

// Mean gap of the tokens after the first arrival; zero if there are none.
absl::Duration MeanGap(const RequestRecord& record) {
  uint64_t tokens = 0;
  for (size_t i = 1; i < record.arrivals.size(); ++i) tokens += record.arrivals[i].tokens;
  if (tokens == 0) return absl::ZeroDuration();
  return (record.arrivals.back().at - record.arrivals.front().at) / static_cast<int64_t>(tokens);
}

bool IsGood(const RequestRecord& record, const GoodputLimits& limits) {
  return record.error.empty() && !record.arrivals.empty() &&
         record.arrivals.front().at - record.sent <= limits.first_token &&
         MeanGap(record) <= limits.inter_token;
}

struct Samples {
  std::vector<double> first_token;
  std::vector<double> inter_token;
  std::vector<double> whole;
};

void AddSamples(const RequestRecord& record, Samples& samples) {
  if (record.error.empty()) samples.whole.push_back(Milliseconds(record.ended - record.sent));
  if (record.arrivals.empty()) return;
  samples.first_token.push_back(Milliseconds(record.arrivals.front().at - record.sent));
  for (size_t i = 1; i < record.arrivals.size(); ++i) {
    const TokenArrival& arrival = record.arrivals[i];
    const double gap = Milliseconds(arrival.at - record.arrivals[i - 1].at) / arrival.tokens;
    samples.inter_token.insert(samples.inter_token.end(), arrival.tokens, gap);
  }
}

std::vector<double> TimelineOf(absl::Span<const RequestRecord> records, absl::Duration begin,
                               double seconds) {
  std::vector<double> timeline(kTimelineSlots, 0);
  const double slot_s = seconds / kTimelineSlots;
  for (const RequestRecord& record : records) {
    for (const TokenArrival& arrival : record.arrivals) {
      const auto slot = static_cast<size_t>(absl::ToDoubleSeconds(arrival.at - begin) / slot_s);
      timeline[std::min(slot, kTimelineSlots - 1)] += arrival.tokens / slot_s;
    }
  }
  return timeline;
}

}  // namespace

Distribution DistributionOf(std::vector<double> samples_ms) {
  Distribution out;
  if (samples_ms.empty()) return out;
  std::sort(samples_ms.begin(), samples_ms.end());
  out.count = samples_ms.size();
  out.mean = std::accumulate(samples_ms.begin(), samples_ms.end(), 0.0) /
             static_cast<double>(samples_ms.size());
  out.p50 = NearestRank(samples_ms, 0.50);
  out.p90 = NearestRank(samples_ms, 0.90);
  out.p99 = NearestRank(samples_ms, 0.99);
  out.max = samples_ms.back();
  FillBuckets(samples_ms, out);
  return out;
}

TrafficSummary Summarize(absl::Span<const RequestRecord> records, const GoodputLimits& limits) {
  TrafficSummary out;
  out.requests = records.size();
  if (records.empty()) return out;
  Samples samples;
  absl::Duration begin = records.front().sent;
  absl::Duration end = records.front().ended;
  for (const RequestRecord& record : records) {
    begin = std::min(begin, record.sent);
    end = std::max(end, record.ended);
    out.prompt_tokens += record.prompt_tokens;
    out.output_tokens += record.output_tokens;
    if (!record.error.empty()) {
      if (out.failed++ == 0) out.first_error = record.message;
      ++out.errors[record.error];
    }
    if (IsGood(record, limits)) ++out.good;
    AddSamples(record, samples);
  }
  out.first_token = DistributionOf(std::move(samples.first_token));
  out.inter_token = DistributionOf(std::move(samples.inter_token));
  out.whole = DistributionOf(std::move(samples.whole));
  out.seconds = absl::ToDoubleSeconds(end - begin);
  if (out.seconds <= 0) return out;
  out.output_tokens_per_s = static_cast<double>(out.output_tokens) / out.seconds;
  out.requests_per_s = static_cast<double>(out.requests - out.failed) / out.seconds;
  out.good_requests_per_s = static_cast<double>(out.good) / out.seconds;
  out.timeline = TimelineOf(records, begin, out.seconds);
  return out;
}

}  // namespace tessera::cli

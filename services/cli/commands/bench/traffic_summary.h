#ifndef TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_SUMMARY_H_
#define TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "services/cli/commands/bench/traffic_record.h"

namespace tessera::cli {

inline constexpr size_t kHistogramBuckets = 10;
inline constexpr size_t kTimelineSlots = 20;

// One figure over many samples, in milliseconds. All zero without samples.
struct Distribution {
  size_t count = 0;
  double mean = 0;
  double p50 = 0;  // nearest rank: always a sample that was measured
  double p90 = 0;
  double p99 = 0;
  double max = 0;
  // Counts in buckets of equal width from `bucket_begin` on. The last one holds all that is beyond
  // the p99 too, so that one straggler does not press the rest into a single bar.
  double bucket_begin = 0;
  double bucket_width = 0;
  std::vector<size_t> buckets;
};

// What a request must keep to count as good.
struct GoodputLimits {
  absl::Duration first_token = absl::Seconds(1);
  absl::Duration inter_token = absl::Milliseconds(100);  // the request's mean
};

struct TrafficSummary {
  size_t requests = 0;
  size_t failed = 0;
  std::map<std::string, size_t> errors;  // how many of each kind
  std::string first_error;               // what was said about the first
  double seconds = 0;                    // from the first request sent to the last one ended
  uint64_t prompt_tokens = 0;
  uint64_t output_tokens = 0;  // of failed requests too: they were generated
  double output_tokens_per_s = 0;
  double requests_per_s = 0;  // that succeeded
  Distribution first_token;   // of requests that had a token
  // Gap between arrivals, a sample for each token after a request's first: k tokens that came
  // together after a gap g are k samples of g / k.
  Distribution inter_token;
  Distribution whole;  // of requests that succeeded
  size_t good = 0;
  double good_requests_per_s = 0;
  std::vector<double> timeline;  // tokens/s in kTimelineSlots equal parts of `seconds`
};

// Pure. Cost: O(tokens log tokens).
TrafficSummary Summarize(absl::Span<const RequestRecord> records, const GoodputLimits& limits);

// Pure. Order of the samples does not matter.
Distribution DistributionOf(std::vector<double> samples_ms);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_SUMMARY_H_

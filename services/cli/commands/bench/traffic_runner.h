#ifndef TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_RUNNER_H_
#define TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_RUNNER_H_

#include <cstddef>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "services/cli/commands/bench/traffic_record.h"
#include "services/cli/commands/bench/traffic_target.h"
#include "services/common/clock.h"

namespace tessera::cli {

// Requests that an open loop keeps open at once. One that comes on top is not sent and counts as
// failed ("not sent"), as a caller would count it.
inline constexpr size_t kOpenRequestsMax = 1024;

// Closed loop: sends `requests` requests with the indices from `index_begin` on, `concurrency` at a
// time; each that ends makes room for the next. Returns their records when all have ended.
std::vector<RequestRecord> RunClosedLoop(TrafficTarget& target, const services::Clock& clock,
                                         size_t index_begin, size_t requests, size_t concurrency);

// Open loop: sends one request at each of the moments, which are in order, however many are still
// open. Returns their records when all have ended.
std::vector<RequestRecord> RunOpenLoop(TrafficTarget& target, const services::Clock& clock,
                                       size_t index_begin,
                                       absl::Span<const absl::Duration> moments);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_RUNNER_H_

#ifndef TESSERA_SERVICES_CLI_COMMANDS_BENCH_ARRIVALS_H_
#define TESSERA_SERVICES_CLI_COMMANDS_BENCH_ARRIVALS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace tessera::cli {

// Requests of one open-loop run, at most.
inline constexpr size_t kArrivalsMax = 1'000'000;

// The moments, from 0 to `duration`, at which independent callers come: a Poisson process of
// `per_s` arrivals a second. Pure: the same seed gives the same moments on every machine.
// REQUIRES: per_s > 0. At most kArrivalsMax are returned.
std::vector<absl::Duration> PoissonArrivals(double per_s, absl::Duration duration, uint64_t seed);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_BENCH_ARRIVALS_H_

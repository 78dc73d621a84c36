#include "services/cli/commands/bench/arrivals.h"

#include <cmath>
#include <random>

namespace tessera::cli {

std::vector<absl::Duration> PoissonArrivals(double per_s, absl::Duration duration, uint64_t seed) {
  std::vector<absl::Duration> arrivals;
  // Not std::exponential_distribution, whose numbers differ between standard libraries.
  std::mt19937_64 random(seed);
  double at_s = 0;
  const double end_s = absl::ToDoubleSeconds(duration);
  while (arrivals.size() < kArrivalsMax) {
    const double uniform = static_cast<double>((random() >> 11) + 1) * 0x1p-53;  // (0, 1]
    at_s -= std::log(uniform) / per_s;
    if (at_s >= end_s) break;
    arrivals.push_back(absl::Seconds(at_s));
  }
  return arrivals;
}

}  // namespace tessera::cli

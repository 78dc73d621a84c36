#ifndef TESSERA_SERVICES_COMMON_CLOCK_H_
#define TESSERA_SERVICES_COMMON_CLOCK_H_

#include "absl/time/time.h"

namespace tessera::services {

// Where services read time, so that tests can turn it by hand (manual_clock.h).
// Threading: both methods may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Time since a fixed point of this process; never goes back, whatever happens to the wall clock.
  // Latencies, limits and deadlines are measured on it.
  virtual absl::Duration Monotonic() const = 0;
  // What a calendar shows: for log lines, `created` fields and templates only.
  virtual absl::Time Wall() const = 0;
};

// The machine's clocks.
const Clock& RealClock();

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_CLOCK_H_

#ifndef TESSERA_SERVICES_COMMON_MANUAL_CLOCK_H_
#define TESSERA_SERVICES_COMMON_MANUAL_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "services/common/clock.h"

namespace tessera::services {

// A clock for tests: stands still until it is advanced. Threading: any thread.
class ManualClock final : public Clock {
 public:
  absl::Duration Monotonic() const override { return absl::Nanoseconds(ns_.load()); }
  absl::Time Wall() const override { return absl::FromUnixSeconds(1'700'000'000) + Monotonic(); }
  void Advance(absl::Duration by) { ns_ += absl::ToInt64Nanoseconds(by); }

 private:
  std::atomic<int64_t> ns_ = 0;
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_MANUAL_CLOCK_H_

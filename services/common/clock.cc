#include "services/common/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace tessera::services {
namespace {

class MachineClock final : public Clock {
 public:
  absl::Duration Monotonic() const override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
  absl::Time Wall() const override { return absl::Now(); }
};

}  // namespace

const Clock& RealClock() {
  static const MachineClock clock;
  return clock;
}

}  // namespace tessera::services

#include "services/cli/commands/up/restart_policy.h"

#include <algorithm>

namespace tessera::cli {

RestartDecision DecideRestart(const RestartLimits& limits, int quick_failures,
                              absl::Duration served) {
  RestartDecision decision;
  decision.quick_failures = served >= limits.served_well ? 1 : quick_failures + 1;
  decision.give_up = decision.quick_failures >= limits.quick_failures_max;
  decision.delay = limits.delay_min;
  for (int i = 1; i < decision.quick_failures && decision.delay < limits.delay_max; ++i) {
    decision.delay *= 2;
  }
  decision.delay = std::min(decision.delay, limits.delay_max);
  return decision;
}

}  // namespace tessera::cli

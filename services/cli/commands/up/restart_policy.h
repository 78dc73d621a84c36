#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_RESTART_POLICY_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_RESTART_POLICY_H_

#include "absl/time/time.h"

namespace tessera::cli {

struct RestartLimits {
  absl::Duration delay_min = absl::Milliseconds(50);
  absl::Duration delay_max = absl::Seconds(5);
  // A child that served for this long failed for a new reason: the pauses start over.
  absl::Duration served_well = absl::Seconds(10);
  // This many failures in a row, none of them after serving well, and we give up.
  int quick_failures_max = 10;
};

struct RestartDecision {
  bool give_up = false;
  int quick_failures = 0;  // in a row, this one included
  absl::Duration delay;    // before the next start
};

// What to do about a child that ended: `quick_failures` is what the last decision said (0 at
// first), `served` how long it had been serving (zero: it never was). The pause doubles with each
// quick failure. Pure: no clock, no state.
RestartDecision DecideRestart(const RestartLimits& limits, int quick_failures,
                              absl::Duration served);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_RESTART_POLICY_H_

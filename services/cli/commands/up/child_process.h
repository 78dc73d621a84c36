#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_CHILD_PROCESS_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tessera::cli {

// Starts `program` as a child that
//   - is killed (SIGKILL) when the calling thread ends, whatever ends it: a supervisor that is gone
//     leaves nothing running. So call it from a thread that lives as long as the children should;
//   - has a process group of its own: a terminal's Ctrl-C reaches the supervisor alone, which can
//     then stop the children in order;
//   - has default signals, none blocked, an empty standard input, both outputs on `output_fd`, and
//     no other descriptor of ours.
// The caller reaps it.
// Errors: kNotFound: no such program; kInternal: the system could not start it. Both name it.
absl::StatusOr<pid_t> SpawnChild(const std::string& program,
                                 const std::vector<std::string>& arguments, int output_fd);

// A wait status in words: "exited with status 1", "died: signal 9 (Killed)".
std::string EndWords(int wait_status);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_CHILD_PROCESS_H_

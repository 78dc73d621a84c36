#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_LAYOUT_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_LAYOUT_H_

#include <filesystem>
#include <vector>

#include "absl/status/statusor.h"

namespace tessera::cli {

// Where the demo model lies in an unpacked repository or image.
inline constexpr char kDemoModel[] = "deploy/demo_model";

// The folder of this program, symbolic links resolved. Errors: kInternal.
absl::StatusOr<std::filesystem::path> OwnFolder();

// Folders from which the demo model may be looked for: the one by which this program was called (in
// a build that is a path through links, and `bin_dir` lies elsewhere), then `bin_dir`.
std::vector<std::filesystem::path> SearchFolders(const std::filesystem::path& bin_dir);

// The demo model in the first of `folders`, or of the folders above it, that has one.
// Errors: kNotFound, with what to do.
absl::StatusOr<std::filesystem::path> FindDemoModel(
    const std::vector<std::filesystem::path>& folders);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_LAYOUT_H_

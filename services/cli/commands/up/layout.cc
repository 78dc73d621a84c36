#include "services/cli/commands/up/layout.h"

#include <fstream>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace tessera::cli {

namespace fs = std::filesystem;

absl::StatusOr<fs::path> OwnFolder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError(absl::StrCat("/proc/self/exe: ", error.message()));
  return self.parent_path();
}

std::vector<fs::path> SearchFolders(const fs::path& bin_dir) {
  std::vector<fs::path> folders;
  std::ifstream arguments("/proc/self/cmdline", std::ios::binary);
  std::string called;
  std::getline(arguments, called, '\0');
  // A name without a slash was found along PATH, and says nothing.
  if (called.find('/') != std::string::npos) {
    std::error_code error;
    const fs::path path = fs::absolute(called, error);
    if (!error) folders.push_back(path.lexically_normal().parent_path());
  }
  folders.push_back(bin_dir);
  return folders;
}

absl::StatusOr<fs::path> FindDemoModel(const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    for (fs::path at = folder; !at.empty(); at = at.parent_path()) {
      std::error_code error;
      const fs::path model = at / kDemoModel;
      if (fs::exists(model / "config.json", error)) return model;
      if (at == at.root_path()) break;
    }
  }
  return absl::NotFoundError(
      absl::StrCat("no MODEL_DIR was given, and no folder above ",
                   folders.empty() ? std::string("this program") : folders.front().string(),
                   " holds the demo model (", kDemoModel, "); name a model's directory"));
}

}  // namespace tessera::cli

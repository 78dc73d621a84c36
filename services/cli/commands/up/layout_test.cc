#include "services/cli/commands/up/layout.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

TEST(FindDemoModel, ClimbsToTheFolderThatHoldsIt) {
  const fs::path root = fs::path(testing::TempDir()) / "found";
  fs::create_directories(root / "deploy/demo_model");
  fs::create_directories(root / "out/deploy/bin");
  std::ofstream(root / "deploy/demo_model/config.json") << "{}";
  const auto model = FindDemoModel({root / "out/deploy/bin"});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(*model, root / "deploy/demo_model");
  fs::remove_all(root);
}

TEST(FindDemoModel, AFolderWithoutAConfigIsNoModel) {
  const fs::path root = fs::path(testing::TempDir()) / "lost";
  fs::create_directories(root / "deploy/demo_model");
  const auto model = FindDemoModel({root});
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(model.status().message()), testing::HasSubstr("deploy/demo_model"));
  EXPECT_THAT(std::string(model.status().message()), testing::HasSubstr(root.string()));
  fs::remove_all(root);
}

TEST(OwnFolder, IsWhereThisProgramLies) {
  const auto folder = OwnFolder();
  ASSERT_TRUE(folder.ok());
  EXPECT_TRUE(fs::exists(*folder / "layout_test"));
}

}  // namespace
}  // namespace tessera::cli

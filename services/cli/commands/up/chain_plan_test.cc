#include "services/cli/commands/up/chain_plan.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class PlanChainTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(bin_dir_);
    for (const char* name : {"engine", "tokenizer", "parser", "gateway"}) {
      const fs::path program = bin_dir_ / (std::string("tessera-") + name);
      std::ofstream(program) << "#!/bin/sh\n";
      ::chmod(program.c_str(), 0755);
    }
  }
  void TearDown() override { fs::remove_all(bin_dir_); }

  std::vector<ChildSpec> Plan(const UpOptions& options, const ChainPorts& ports) {
    auto specs = PlanChain(options, ports, bin_dir_.string(), "/model");
    EXPECT_TRUE(specs.ok()) << specs.status();
    return specs.ok() ? *specs : std::vector<ChildSpec>(4);
  }
  // The value that follows `flag`; "" when it is not given.
  static std::string Value(const ChildSpec& spec, const std::string& flag) {
    for (size_t i = 0; i + 1 < spec.arguments.size(); ++i) {
      if (spec.arguments[i] == flag) return spec.arguments[i + 1];
    }
    return "";
  }

  const fs::path bin_dir_ = fs::path(testing::TempDir()) / "bin";
};

TEST_F(PlanChainTest, EachHopIsToldTheAddressOfTheHopBelow) {
  UpOptions options;
  options.port = 0;
  const auto ports = TakePorts(options);
  ASSERT_TRUE(ports.ok()) << ports.status();
  const std::vector<ChildSpec> specs = Plan(options, *ports);
  ASSERT_EQ(specs.size(), 4u);
  EXPECT_EQ(Value(specs[kTokenizer], "--engine"), Value(specs[kEngine], "--listen"));
  EXPECT_EQ(Value(specs[kParser], "--tokenizer"), Value(specs[kTokenizer], "--listen"));
  EXPECT_EQ(Value(specs[kGateway], "--parser"), Value(specs[kParser], "--listen"));
  EXPECT_EQ(Value(specs[kGateway], "--listen"), ports->gateway->listen_address());
  EXPECT_EQ(Value(specs[kEngine], "--model"), "/model");
}

TEST_F(PlanChainTest, WhatTheUserDidNotSayIsLeftToTheProcess) {
  UpOptions options;
  options.port = 0;
  const auto ports = TakePorts(options);
  ASSERT_TRUE(ports.ok());
  EXPECT_THAT(Plan(options, *ports)[kEngine].arguments, Not(Contains("--threads")));
  options.threads = 2;
  options.device = "cuda";
  options.log_dir = "/logs";
  options.engine_flags = {"--kv-blocks=64"};
  options.default_chat_template_kwargs = R"({"a":1})";
  const std::vector<ChildSpec> specs = Plan(options, *ports);
  EXPECT_EQ(Value(specs[kEngine], "--threads"), "2");
  EXPECT_EQ(Value(specs[kEngine], "--device"), "cuda");
  EXPECT_EQ(specs[kEngine].arguments.back(), "--kv-blocks=64");
  EXPECT_EQ(specs[kParser].log_path, "/logs/parser.log");
  EXPECT_EQ(Value(specs[kTokenizer], "--default-chat-template-kwargs"), R"({"a":1})");
}

TEST_F(PlanChainTest, WithoutAGatewayThereIsNone) {
  UpOptions options;
  options.port = 0;
  options.gateway = false;
  const auto ports = TakePorts(options);
  ASSERT_TRUE(ports.ok());
  EXPECT_EQ(Plan(options, *ports).size(), 3u);
}

TEST_F(PlanChainTest, AProgramThatIsMissingIsNamedWithTheRemedy) {
  fs::remove(bin_dir_ / "tessera-parser");
  UpOptions options;
  options.port = 0;
  const auto ports = TakePorts(options);
  ASSERT_TRUE(ports.ok());
  const auto specs = PlanChain(options, *ports, bin_dir_.string(), "/model");
  ASSERT_FALSE(specs.ok());
  EXPECT_THAT(std::string(specs.status().message()), HasSubstr("tessera-parser"));
  EXPECT_THAT(std::string(specs.status().message()), HasSubstr("--bin-dir"));
}

}  // namespace
}  // namespace tessera::cli

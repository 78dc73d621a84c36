#include "engine/planner/memory_plan.h"

#include <cmath>
#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class Puzzle75b : public ::testing::Test {
 protected:
  Puzzle75b() {
    const std::string dir = "tests/golden/puzzle75b";
    model_ = *LoadModelConfig(dir);
    quantization_ = *QuantizationConfig::Load(dir);
  }
  MemoryPlan Plan(const PlanOptions& options) const {
    auto plan = PlanMemory(model_, *quantization_, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *plan;
  }
  static PlanOptions TwoSmallDevices() {
    PlanOptions options;
    options.memory_bytes = 24 * kGiB;
    options.workers = 2;
    options.max_model_len = 262144;
    options.max_sequences = 4;
    options.kv_type = StateType::kInt8;
    return options;
  }
  ModelConfig model_;
  std::unique_ptr<QuantizationConfig> quantization_;
};

TEST_F(Puzzle75b, FitsTwoDevicesOf24GiBWithFullContextAndFourSequences) {
  const MemoryPlan plan = Plan(TwoSmallDevices());
  EXPECT_TRUE(plan.fits);
  EXPECT_GE(plan.kv_tokens_fit, 262144u);
  uint64_t sum = 0;
  for (const PlanPart& part : plan.parts) sum += part.bytes;
  EXPECT_EQ(sum, plan.total_bytes);
  EXPECT_EQ(plan.margin_bytes + plan.total_bytes, 24 * kGiB);
}

TEST_F(Puzzle75b, HasThePublishedWeights) {
  const MemoryPlan plan = Plan(TwoSmallDevices());
  EXPECT_NEAR(plan.weight_bytes_model / 1e9, 44.53, 0.01);
  EXPECT_NEAR(plan.weight_bytes / 1e9, 22.69, 0.02);
}

TEST_F(Puzzle75b, ReadsOnlyTheChosenExpertsOfAStep) {
  PlanOptions options = TwoSmallDevices();
  options.workers = 1;
  options.max_sequences = 1;
  EXPECT_NEAR(Plan(options).weight_bytes_decode / 1e9, 9.415, 0.001);
  options.max_sequences = 4;
  EXPECT_NEAR(Plan(options).weight_bytes_decode / 1e9, 11.621, 0.001);
}

TEST_F(Puzzle75b, CountsStateAndKvOfAllLayers) {
  PlanOptions options = TwoSmallDevices();
  options.workers = 1;
  options.memory_bytes = 80 * kGiB;
  MemoryPlan plan = Plan(options);
  EXPECT_EQ(plan.kv_bytes_per_token, 4224u);
  EXPECT_EQ(plan.state_bytes_per_sequence, 40ull * 128 * 64 * 96 * 4 + 40ull * 9728 * 3 * 2);
  options.kv_type = StateType::kBf16;
  EXPECT_EQ(Plan(options).kv_bytes_per_token, 8192u);
}

TEST_F(Puzzle75b, SaysWhatIsMissingAndWhichKnobHelps) {
  PlanOptions options = TwoSmallDevices();
  options.workers = 1;
  options.kv_type = StateType::kBf16;
  const MemoryPlan plan = Plan(options);
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.missing_bytes, plan.total_bytes - 24 * kGiB);
  ASSERT_FALSE(plan.knobs.empty());
  EXPECT_EQ(plan.knobs[0].change, "--workers 2");
  EXPECT_GT(plan.knobs[0].bytes_freed, 20 * kGiB);
}

TEST_F(Puzzle75b, RefusesWhatCannotBe) {
  PlanOptions options = TwoSmallDevices();
  options.workers = 3;
  EXPECT_FALSE(PlanMemory(model_, *quantization_, options).ok());
  options.workers = 2;
  options.max_model_len = 262145;
  EXPECT_FALSE(PlanMemory(model_, *quantization_, options).ok());
}

TEST(ParseBytes, ReadsUnits) {
  EXPECT_EQ(*ParseBytes("24GiB"), 24 * kGiB);
  EXPECT_EQ(*ParseBytes("1.5GB"), 1500000000u);
  EXPECT_EQ(*ParseBytes("4096"), 4096u);
  for (const char* bad : {"", "GiB", "-1GiB", "24 giga", "nan", "inf", "0"}) {
    EXPECT_FALSE(ParseBytes(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace tessera::engine

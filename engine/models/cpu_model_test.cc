// The CPU model against an independent implementation on seven tiny checkpoints: logits, greedy
// tokens, and that neither cutting a prompt nor neighbours nor an old occupant of a slot change
// anything.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <numeric>

#include "engine/models/model.h"
#include "engine/models/reference_cases.h"
#include "gtest/gtest.h"

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(size)) return memory;
  std::abort();
}
// Also replaced because the standard library frees what this one gave with the delete below.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tessera::engine {
namespace {

// The reference computes in float64; float32 was measured to cost it 2e-5 there.
constexpr float kLogitErrorMax = 2e-4f;
// Where the two best logits are closer than this the choice may differ.
constexpr double kMarginMin = 1e-3;

constexpr uint32_t kBlockTokens = 16;
constexpr uint32_t kSequenceBlocks = 80;
constexpr uint32_t kSlots = 4;

class CpuModelTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = std::string("tests/golden/model/") + GetParam();
    std::vector<std::string> warnings;
    absl::StatusOr<std::unique_ptr<Model>> model = LoadCpuModel(folder_,
                                                                {.slots = kSlots,
                                                                 .blocks = kSlots * kSequenceBlocks,
                                                                 .block_tokens = kBlockTokens,
                                                                 .step_tokens_max = 2048,
                                                                 .logit_rows_max = 1024,
                                                                 .threads = 2},
                                                                nullptr, &warnings);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    cases_ = ReadReferenceCases(folder_);
    ASSERT_FALSE(cases_.empty());
  }

  static SequenceDriver DriverOf(uint32_t slot) {
    return SequenceDriver(SlotId(slot), slot * kSequenceBlocks, kSequenceBlocks);
  }

  // The logits at the case's positions, its prompt forwarded in pieces of `piece` tokens.
  std::vector<float> PromptLogits(const ReferenceCase& one, uint32_t piece, uint32_t slot = 0) {
    SequenceDriver driver = DriverOf(slot);
    std::vector<float> all;
    for (uint32_t begin = 0; begin < one.prompt.size(); begin += piece) {
      const uint32_t count = std::min<uint32_t>(piece, one.prompt.size() - begin);
      std::vector<uint32_t> offsets;
      for (uint32_t position : one.logit_positions) {
        if (position >= begin && position < begin + count) offsets.push_back(position - begin);
      }
      const SequenceChunk chunk = driver.Next(std::span(one.prompt).subspan(begin, count), offsets);
      std::vector<float> logits(offsets.size() * model_->shape().vocab);
      const absl::Status status = model_->Forward({&chunk, 1}, logits);
      EXPECT_TRUE(status.ok()) << status;
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

  TokenId Best(std::span<const float> logits) const {
    return TokenId(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }

  std::string folder_;
  std::unique_ptr<Model> model_;
  std::vector<ReferenceCase> cases_;
};

float LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (!(difference <= most)) most = difference;  // NaN counts as largest
  }
  return most;
}

TEST_P(CpuModelTest, LogitsAreTheReferencesForAnyCutOfThePrompt) {
  float most = 0;
  for (const ReferenceCase& one : cases_) {
    for (uint32_t piece : {1u, 3u, 16u, 64u, 2048u}) {
      // A prompt of a thousand tokens one by one is covered by the other cuts.
      if (piece == 1 && one.prompt.size() > 200) continue;
      const float error = LargestDifference(PromptLogits(one, piece), one.logits);
      EXPECT_LE(error, kLogitErrorMax) << one.prompt.size() << " tokens in pieces of " << piece;
      most = std::max(most, error);
    }
  }
  RecordProperty("largest_logit_error", std::to_string(most));
  std::printf("%s: largest logit error %.2g\n", GetParam(), most);
}

// Greedy decoding of `cases`, all side by side in slots of their own, each starting `stagger` steps
// after the one before, prompts in pieces.
TEST_P(CpuModelTest, GreedyTokensAreTheReferencesAloneAndBesideOthers) {
  for (uint32_t together : {1u, kSlots}) {
    for (size_t first = 0; first < cases_.size(); ++first) {
      struct Running {
        const ReferenceCase* one;
        SequenceDriver driver;
        uint32_t done = 0;               // prompt tokens forwarded
        std::vector<TokenId> generated;  // follows the reference where margins are small
        std::vector<TokenId> next;
      };
      std::vector<Running> running;
      for (uint32_t i = 0; i < together; ++i) {
        running.push_back({&cases_[(first + i) % cases_.size()], DriverOf(i)});
      }
      constexpr uint32_t kPiece = 37;
      const uint32_t zero[] = {0};
      for (int step = 0; step < 4096; ++step) {
        std::vector<SequenceChunk> chunks;
        std::vector<Running*> sampling;
        std::vector<std::vector<uint32_t>> offsets(together);
        for (uint32_t i = 0; i < together; ++i) {
          Running& r = running[i];
          if (static_cast<uint32_t>(step) < i * 2 || r.generated.size() == r.one->greedy.size())
            continue;
          if (r.done < r.one->prompt.size()) {
            const uint32_t count = std::min<uint32_t>(kPiece, r.one->prompt.size() - r.done);
            const bool last = r.done + count == r.one->prompt.size();
            if (last) offsets[i] = {count - 1};
            chunks.push_back(
                r.driver.Next(std::span(r.one->prompt).subspan(r.done, count), offsets[i]));
            r.done += count;
            if (last) sampling.push_back(&r);
          } else {
            r.next = {r.generated.back()};
            chunks.push_back(r.driver.Next(r.next, zero));
            sampling.push_back(&r);
          }
        }
        if (chunks.empty() && static_cast<uint32_t>(step) >= together * 2) break;
        const uint32_t vocab = model_->shape().vocab;
        std::vector<float> logits(sampling.size() * vocab);
        ASSERT_TRUE(model_->Forward(chunks, logits).ok());
        for (size_t i = 0; i < sampling.size(); ++i) {
          Running& r = *sampling[i];
          const ReferenceCase::Step& expected = r.one->greedy[r.generated.size()];
          if (expected.margin > kMarginMin) {
            ASSERT_EQ(Best(std::span(logits).subspan(i * vocab, vocab)).value, expected.token.value)
                << "token " << r.generated.size() << ", " << together << " together";
          }
          r.generated.push_back(expected.token);
        }
      }
      for (const Running& r : running) EXPECT_EQ(r.generated.size(), r.one->greedy.size());
      if (together > 1 && first == 2) break;  // three mixes are enough
    }
  }
}

TEST_P(CpuModelTest, AnOldOccupantOfASlotLeavesNothingBehind) {
  const std::vector<float> fresh = PromptLogits(cases_[0], 16, 1);
  for (const ReferenceCase& other : cases_) PromptLogits(other, 64, 1);
  EXPECT_EQ(PromptLogits(cases_[0], 16, 1), fresh);
}

TEST_P(CpuModelTest, AStepAllocatesNothing) {
  SequenceDriver driver = DriverOf(0);
  const std::vector<TokenId> prompt(100, TokenId(3));
  const uint32_t last[] = {99}, zero[] = {0};
  std::vector<float> logits(model_->shape().vocab);
  const uint64_t before = allocations.load();
  const SequenceChunk first = driver.Next(prompt, last);
  ASSERT_TRUE(model_->Forward({&first, 1}, logits).ok());
  for (int i = 0; i < 10; ++i) {
    const SequenceChunk next = driver.Next(std::span(prompt).first(1), zero);
    ASSERT_TRUE(model_->Forward({&next, 1}, logits).ok());
  }
  // The names that Check makes for its errors are longer than a short string can hold.
  EXPECT_LE(allocations.load() - before, 0u);
}

TEST_P(CpuModelTest, ChunksThatBreakARuleAreRefusedByName) {
  std::vector<BlockId> blocks = {BlockId(0)};
  std::vector<TokenId> tokens = {TokenId(1)};
  const auto refused = [&](SequenceChunk chunk, const std::string& name) {
    std::vector<float> logits(chunk.logit_offsets.size() * model_->shape().vocab);
    const absl::Status status = model_->Forward({&chunk, 1}, logits);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(name), std::string::npos) << status;
  };
  const SequenceChunk good = {.slot = SlotId(0), .tokens = tokens, .block_table = blocks};
  SequenceChunk bad = good;
  bad.slot = SlotId(kSlots);
  refused(bad, "slot");
  bad = good;
  bad.position = kBlockTokens;
  refused(bad, "block_table");
  bad = good;
  bad.tokens = {};
  refused(bad, "tokens");
  const std::vector<BlockId> outside = {BlockId(kSlots * kSequenceBlocks)};
  bad = good;
  bad.block_table = outside;
  refused(bad, "block_table");
  const std::vector<TokenId> unknown = {TokenId(1), TokenId(model_->shape().vocab)};
  bad = good;
  bad.tokens = unknown;
  refused(bad, "tokens[1]");
  const std::vector<uint32_t> offsets = {1};
  bad = good;
  bad.logit_offsets = offsets;
  refused(bad, "logit_offsets");
  const SequenceChunk twice[] = {good, good};
  EXPECT_NE(model_->Forward(twice, {}).message().find("twice"), std::string::npos);
  EXPECT_TRUE(model_->Forward({&good, 1}, {}).ok());
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, CpuModelTest,
                         testing::Values("dense_hybrid", "nano_moe", "super_latent", "puzzle_bf16",
                                         "puzzle_w4a16", "puzzle_nvfp4", "long_chunks"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace tessera::engine

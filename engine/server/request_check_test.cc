#include "engine/server/request_check.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/field_error.h"

namespace tessera::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ModelFacts kModel = {.name = "demo",
                           .vocab = 4096,
                           .context_tokens_max = 100,
                           .eos_ids = {TokenId(2), TokenId(11)},
                           .temperature = 0.25f,
                           .top_p = 0.5f,
                           .top_k = 7,
                           .repetition_penalty = 1.5f};

v1::GenerateRequest Good() {
  v1::GenerateRequest request;
  for (uint32_t id : {5u, 6u, 7u}) request.mutable_prompt()->add_ids(id);
  return request;
}

absl::Status Check(const v1::GenerateRequest& request) {
  return CheckRequest(request, kModel, 99).status();
}

// What is said about a good request after `spoil`.
template <typename Spoil>
std::string Said(Spoil spoil) {
  v1::GenerateRequest request = Good();
  spoil(request, *request.mutable_sampling());
  const absl::Status status = Check(request);
  EXPECT_TRUE(status.ok() || services::FieldOf(status).has_value()) << status;
  return status.ToString();
}

TEST(CheckRequest, TakesTheModelsDefaultsWhereTheRequestIsSilent) {
  const auto request = CheckRequest(Good(), kModel, 99);
  ASSERT_EQ(request.status(), absl::OkStatus());
  EXPECT_EQ(request->sampling.temperature, 0.25f);
  EXPECT_EQ(request->sampling.top_p, 0.5f);
  EXPECT_EQ(request->sampling.top_k, 7u);
  EXPECT_EQ(request->sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(request->sampling.seed, 99u);
  EXPECT_EQ(request->sampling.logprobs, std::nullopt);
  EXPECT_EQ(request->max_tokens, 97u);
  EXPECT_EQ(request->choices, 1u);
  EXPECT_THAT(request->eos_ids, ElementsAre(TokenId(2), TokenId(11)));
}

TEST(CheckRequest, AnExplicitZeroIsAZero) {
  v1::GenerateRequest proto = Good();
  proto.mutable_sampling()->set_temperature(0);
  proto.mutable_sampling()->set_top_k(0);
  proto.mutable_sampling()->set_seed(0);
  proto.mutable_sampling()->set_logprobs(0);
  proto.mutable_sampling()->set_ignore_eos(true);
  proto.mutable_sampling()->set_max_tokens(5000);
  const auto request = CheckRequest(proto, kModel, 99);
  ASSERT_EQ(request.status(), absl::OkStatus());
  EXPECT_EQ(request->sampling.temperature, 0.0f);
  EXPECT_EQ(request->sampling.top_k, 0u);
  EXPECT_EQ(request->sampling.seed, 0u);
  EXPECT_EQ(request->sampling.logprobs, std::optional<uint32_t>(0));
  EXPECT_TRUE(request->eos_ids.empty());
  EXPECT_EQ(request->max_tokens, 97u) << "the context bounds it";
}

TEST(CheckRequest, NamesWhatIsWrongWithThePrompt) {
  EXPECT_THAT(Said([](auto& r, auto&) { r.mutable_prompt()->clear_ids(); }),
              HasSubstr("INVALID_ARGUMENT: prompt.ids: is empty; give at least one token"));
  EXPECT_THAT(Said([](auto& r, auto&) { r.mutable_prompt()->add_ids(5000); }),
              HasSubstr("prompt.ids[3]: is 5000; the vocabulary has 4096"));
  EXPECT_THAT(Said([](auto& r, auto&) {
                for (int i = 0; i < 97; ++i) r.mutable_prompt()->add_ids(1);
              }),
              HasSubstr("OUT_OF_RANGE: prompt.ids: has 100 tokens; the context of 100"));
  EXPECT_THAT(Said([](auto& r, auto&) { r.set_model("other"); }),
              HasSubstr("NOT_FOUND: model: is 'other'; this engine serves 'demo'"));
}

TEST(CheckRequest, NamesEveryNumberThatIsOutOfItsRange) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, inf, -inf, -0.5f, 100.5f}) {
    EXPECT_THAT(Said([&](auto&, auto& s) { s.set_temperature(bad); }),
                HasSubstr("sampling.temperature: is "));
  }
  for (const float bad : {nan, 0.0f, 1.5f}) {
    EXPECT_THAT(Said([&](auto&, auto& s) { s.set_top_p(bad); }),
                HasSubstr("give a number above 0 and up to 1"));
  }
  EXPECT_THAT(Said([](auto&, auto& s) { s.set_min_p(1.5f); }), HasSubstr("sampling.min_p: is 1.5"));
  EXPECT_THAT(Said([](auto&, auto& s) { s.set_repetition_penalty(0); }),
              HasSubstr("sampling.repetition_penalty: is 0"));
  EXPECT_THAT(Said([](auto&, auto& s) { s.set_presence_penalty(2.5f); }),
              HasSubstr("sampling.presence_penalty: is 2.5"));
  EXPECT_THAT(Said([](auto&, auto& s) { s.set_frequency_penalty(-3); }),
              HasSubstr("sampling.frequency_penalty: is -3"));
  EXPECT_THAT(Said([](auto&, auto& s) { s.set_max_tokens(0); }),
              HasSubstr("sampling.max_tokens: is 0; give at least 1"));
  EXPECT_THAT(Said([](auto&, auto& s) {
                s.set_max_tokens(3);
                s.set_min_tokens(4);
              }),
              HasSubstr("sampling.min_tokens: is 4; max_tokens is 3"));
  EXPECT_THAT(Said([](auto&, auto& s) { s.set_logprobs(21); }),
              HasSubstr("sampling.logprobs: is 21; give at most 20"));
  EXPECT_THAT(Said([](auto&, auto& s) { s.set_n(0); }),
              HasSubstr("sampling.n: is 0; give 1 to 16"));
  EXPECT_THAT(Said([](auto&, auto& s) { s.set_n(17); }), HasSubstr("sampling.n: is 17"));
}

TEST(CheckRequest, NamesTheEntryThatIsWrong) {
  EXPECT_THAT(Said([](auto&, auto& s) { (*s.mutable_logit_bias())[4096] = 1; }),
              HasSubstr("sampling.logit_bias[4096]: is 4096; the vocabulary has 4096"));
  EXPECT_THAT(Said([](auto&, auto& s) { (*s.mutable_logit_bias())[3] = 101; }),
              HasSubstr("sampling.logit_bias[3]: is 101"));
  EXPECT_THAT(Said([](auto&, auto& s) {
                for (uint32_t i = 0; i < 1025; ++i) (*s.mutable_logit_bias())[i] = 1;
              }),
              HasSubstr("has 1025 entries; give at most 1024"));
  EXPECT_THAT(Said([](auto&, auto& s) {
                s.add_stop_token_ids(1);
                s.add_stop_token_ids(9999);
              }),
              HasSubstr("sampling.stop_token_ids[1]: is 9999"));
  EXPECT_THAT(Said([](auto&, auto& s) {
                for (int i = 0; i < 65; ++i) s.add_stop_token_ids(1);
              }),
              HasSubstr("has 65 ids; give at most 64"));
}

}  // namespace
}  // namespace tessera::engine

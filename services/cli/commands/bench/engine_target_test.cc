#include "services/cli/commands/bench/engine_target.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/clients/fake_engine_client.h"

namespace tessera::cli {
namespace {

using engine::v1::GenerateRequest;
using engine::v1::GenerateResponse;
using services::FakeEngineClient;

class EngineTargetTest : public testing::Test {
 protected:
  EngineTargetTest() {
    engine_.on_get_model_info = [this] {
      engine::v1::GetModelInfoResponse info;
      info.set_vocab_size(vocab_size_);
      info.set_context_tokens_max(100);
      return info;
    };
    engine_.on_generate = [this](const auto&, const GenerateRequest& request, auto stream) {
      requests_.push_back(request);
      for (GenerateResponse message : messages_) stream->Send(message);
      stream->Finish(status_);
    };
  }

  TrafficEnd Start(size_t index,
                   const EngineTraffic& traffic = {.prompt_tokens = 8, .max_tokens = 5}) {
    auto target = MakeEngineTarget(engine_, traffic);
    EXPECT_TRUE(target.ok()) << target.status();
    TrafficEnd end;
    (*target)->Start(index, {.on_tokens = [this](uint32_t n) { tokens_.push_back(n); },
                             .on_done = [&end](TrafficEnd e) { end = e; }});
    return end;
  }

  FakeEngineClient engine_;
  uint32_t vocab_size_ = 50;
  std::vector<GenerateResponse> messages_;
  absl::Status status_;
  std::vector<GenerateRequest> requests_;
  std::vector<uint32_t> tokens_;
};

GenerateResponse Tokens(int count) {
  GenerateResponse message;
  message.mutable_delta();
  for (int i = 0; i < count; ++i) message.mutable_delta()->add_tokens()->set_id(1);
  return message;
}

GenerateResponse Finished() {
  GenerateResponse message;
  message.mutable_finished()->mutable_usage()->set_prompt_tokens(8);
  message.mutable_finished()->mutable_usage()->set_completion_tokens(5);
  return message;
}

TEST_F(EngineTargetTest, CountsTokensAsTheyCome) {
  GenerateResponse started;
  started.mutable_started();
  messages_ = {started, Tokens(1), Tokens(4), Tokens(0), Finished()};
  const TrafficEnd end = Start(0);
  EXPECT_EQ(tokens_, (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(end.prompt_tokens, 8u);
  EXPECT_EQ(end.output_tokens, 5u);
}

TEST_F(EngineTargetTest, PromptsDifferByIndexAndSeedAndAreRepeatable) {
  messages_ = {Finished()};
  Start(0);
  Start(1);
  Start(0);
  Start(0, {.prompt_tokens = 8, .max_tokens = 5, .seed = 1});
  const auto ids = [this](size_t i) {
    const auto& list = requests_[i].prompt().ids();
    return std::vector<uint32_t>(list.begin(), list.end());
  };
  EXPECT_EQ(ids(0).size(), 8u);
  for (const uint32_t id : ids(0)) EXPECT_LT(id, vocab_size_);
  EXPECT_NE(ids(0), ids(1));
  EXPECT_EQ(ids(0), ids(2));
  EXPECT_NE(ids(0), ids(3));
}

TEST_F(EngineTargetTest, SamplingIsAsAsked) {
  messages_ = {Finished()};
  Start(3, {.prompt_tokens = 1, .max_tokens = 7, .ignore_eos = false, .temperature = 0.5f});
  EXPECT_EQ(requests_[0].sampling().max_tokens(), 7u);
  EXPECT_FALSE(requests_[0].sampling().ignore_eos());
  EXPECT_EQ(requests_[0].sampling().temperature(), 0.5f);
}

TEST_F(EngineTargetTest, FailuresHaveTheirCode) {
  status_ = absl::ResourceExhaustedError("the queue is full");
  const TrafficEnd end = Start(0);
  EXPECT_EQ(end.error, "RESOURCE_EXHAUSTED");
  EXPECT_EQ(end.message, "the queue is full");
  EXPECT_FALSE(end.output_tokens.has_value());
}

TEST_F(EngineTargetTest, AStreamWithoutItsEndIsAFailure) {
  messages_ = {Tokens(2)};
  EXPECT_EQ(Start(0).error, "cut");
}

TEST_F(EngineTargetTest, WhatCannotFitIsRefusedBeforeAnythingIsSent) {
  EXPECT_EQ(MakeEngineTarget(engine_, {.prompt_tokens = 60, .max_tokens = 41}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(MakeEngineTarget(engine_, {.prompt_tokens = 60, .max_tokens = 40}).ok());
  vocab_size_ = 0;
  EXPECT_EQ(MakeEngineTarget(engine_, {.prompt_tokens = 1}).status().code(),
            absl::StatusCode::kUnavailable);
  engine_.on_get_model_info = [] { return absl::UnavailableError("gone"); };
  EXPECT_EQ(MakeEngineTarget(engine_, {.prompt_tokens = 1}).status().message(), "gone");
  EXPECT_TRUE(requests_.empty());
}

}  // namespace
}  // namespace tessera::cli

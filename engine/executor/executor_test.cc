#include "engine/executor/executor.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "engine/executor/simulated_worker.h"
#include "engine/ipc/fake_worker_channel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kVocab = 100;

// Runs with the machine, and jumps when told.
class JumpingClock final : public Clock {
 public:
  uint64_t NowUs() const override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return offset_us + static_cast<uint64_t>(
                           std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  }
  std::atomic<uint64_t> offset_us = 0;
};

class Sink final : public RequestSink {
 public:
  void OnDelta(ChoiceDelta delta) override {
    absl::MutexLock lock(&mutex_);
    for (const GeneratedToken& token : delta.tokens) tokens_.push_back(token.token);
  }
  void OnEnd(RequestEnd end) override {
    end_ = std::move(end);
    ended_.Notify();
  }
  const RequestEnd& End() {
    ended_.WaitForNotification();
    return end_;
  }
  bool HasEnded() const { return ended_.HasBeenNotified(); }
  std::vector<TokenId> tokens() {
    absl::MutexLock lock(&mutex_);
    return tokens_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<TokenId> tokens_;
  RequestEnd end_;
  absl::Notification ended_;
};

struct Facts final : public StepObserver {
  void OnStep(const StepFacts&) override { ++steps; }
  void OnToken(const TokenFacts& facts) override { first_tokens += facts.first; }
  void OnPreempted(uint32_t) override {}
  void OnLoad(const LoadFacts&) override {}
  void OnRequestEnd(const RequestFacts&) override { ++ends; }
  std::atomic<int> steps = 0, first_tokens = 0, ends = 0;
};

class ExecutorTest : public testing::Test, public WorkerKeeper, public WorkerEvents {
 protected:
  static ExecutorOptions Options() {
    return {.loop = {.slots = 2,
                     .blocks = 16,
                     .vocab = kVocab,
                     .plans_in_flight_max = 2,
                     .limits = {.block_tokens = 4,
                                .step_tokens_max = 16,
                                .prefill_tokens_beside_decode_max = 8}},
            .queue_requests_max = 3,
            .queue_tokens_max = 40,
            .step_us_max = 5'000'000};
  }

  ExecutorTest() : executor_(Options(), clock_, facts_, *this) {
    thread_ = std::thread([this] { executor_.Run(); });
  }
  ~ExecutorTest() override {
    executor_.Stop();
    thread_.join();
  }

  void StartWorker() {
    ++generation_;
    auto simulated = std::make_shared<SimulatedWorker>(SimulatedWorker::Limits{
        .slots = 2, .blocks = 16, .block_tokens = 4, .step_tokens_max = 16, .vocab = kVocab});
    worker_ = std::make_shared<FakeWorkerChannel>(
        *this, [this, simulated, first = true](const StepPlan& plan) mutable {
          if (std::exchange(first, false)) simulated->ExpectStep(plan.step);
          StepResult result = simulated->Run(plan);
          if (lie_) result.step += 5;
          return result;
        });
    executor_.AttachWorker(generation_, worker_);
    executor_.Refuse(absl::OkStatus());
  }

  static GenerationRequest Request(const std::string& id, uint32_t prompt, uint32_t max_tokens) {
    GenerationRequest request;
    request.request_id = id;
    for (uint32_t i = 0; i < prompt; ++i) request.prompt.push_back(TokenId(i % kVocab));
    request.max_tokens = max_tokens;
    return request;
  }

  std::shared_ptr<Sink> Submit(const GenerationRequest& request) {
    auto sink = std::make_shared<Sink>();
    EXPECT_EQ(executor_.Submit(request, sink), absl::OkStatus());
    return sink;
  }

  void AnswerUntil(Sink& sink) {
    while (!sink.HasEnded()) {
      if (!worker_->AnswerOne()) std::this_thread::yield();
    }
  }

  void OnWorkerUnfit(uint64_t generation, const absl::Status& reason) override {
    EXPECT_EQ(generation, generation_);
    unfit_reason_ = reason;
    unfit_.Notify();
  }
  void OnLoadProgress(const WorkerProgress&) override {}
  void OnLoaded(const absl::Status&, const std::vector<std::string>&) override {}
  void OnResult(StepResult result) override {
    executor_.PostResult(generation_, std::move(result));
  }
  void OnLost(const absl::Status& reason) override { executor_.PostLost(generation_, reason); }

  JumpingClock clock_;
  Facts facts_;
  std::atomic<bool> lie_ = false;
  std::atomic<uint64_t> generation_ = 0;
  absl::Notification unfit_;
  absl::Status unfit_reason_;
  std::shared_ptr<FakeWorkerChannel> worker_;
  Executor executor_;
  std::thread thread_;
};

TEST_F(ExecutorTest, AnswersARequestAndIsIdleAgain) {
  StartWorker();
  const GenerationRequest request = Request("a", 20, 9);
  auto sink = Submit(request);
  AnswerUntil(*sink);
  EXPECT_EQ(sink->End().status, absl::OkStatus());
  EXPECT_EQ(sink->End().prompt_tokens, 20u);
  EXPECT_EQ(sink->tokens(), SimulatedWorker::Answer(request, 0, 9, kVocab));
  EXPECT_TRUE(executor_.WaitIdle(absl::Seconds(5)));
  EXPECT_EQ(executor_.Load().slots_used, 0u);
  EXPECT_EQ(executor_.Load().blocks_used, 0u);
  EXPECT_EQ(facts_.first_tokens, 1);
}

TEST_F(ExecutorTest, RefusesBeforeAWorkerHasLoaded) {
  const absl::Status status = executor_.Submit(Request("a", 3, 3), std::make_shared<Sink>());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("loading"));
}

TEST_F(ExecutorTest, BoundsTheQueueByRequestsAndByTokensAndNamesTheLimit) {
  StartWorker();
  // Two are admitted to slots, the rest waits; the worker answers nothing meanwhile.
  std::vector<std::shared_ptr<Sink>> sinks;
  sinks.push_back(Submit(Request("run-1", 4, 4)));
  sinks.push_back(Submit(Request("run-2", 4, 4)));
  while (executor_.Load().requests_running < 2) worker_->AnswerOne();
  sinks.push_back(Submit(Request("wait-1", 30, 4)));
  absl::Status status = executor_.Submit(Request("long", 11, 1), std::make_shared<Sink>());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("--queue-tokens-max is 40"));
  sinks.push_back(Submit(Request("wait-2", 1, 4)));
  sinks.push_back(Submit(Request("wait-3", 1, 4)));
  status = executor_.Submit(Request("wait-4", 1, 1), std::make_shared<Sink>());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("--queue-requests-max is 3"));
  EXPECT_EQ(executor_.Load().requests_waiting, 3u);
  for (auto& sink : sinks) AnswerUntil(*sink);
  EXPECT_EQ(facts_.ends, 5);
}

TEST_F(ExecutorTest, RefusesASecondRequestOfTheSameIdWhileTheFirstLives) {
  StartWorker();
  auto first = Submit(Request("same", 4, 4));
  EXPECT_EQ(executor_.Submit(Request("same", 4, 4), std::make_shared<Sink>()).code(),
            absl::StatusCode::kAlreadyExists);
  AnswerUntil(*first);
  AnswerUntil(*Submit(Request("same", 4, 4)));
}

TEST_F(ExecutorTest, CancellationFreesEverythingWithoutAnotherResult) {
  StartWorker();
  auto sink = Submit(Request("a", 4, 40));
  worker_->AwaitAndAnswerOne();
  executor_.Cancel("a");
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(executor_.WaitIdle(absl::Seconds(5)));
  EXPECT_EQ(executor_.Load().slots_used, 0u);
  AnswerUntil(*Submit(Request("b", 4, 4)));
}

TEST_F(ExecutorTest, AbortFinishesWithItsOwnReasonAndNamesWhatItFound) {
  StartWorker();
  auto sink = Submit(Request("a", 4, 40));
  EXPECT_THAT(executor_.Abort({"nobody", "a"}), ElementsAre("a"));
  EXPECT_EQ(sink->End().status, absl::OkStatus());
  ASSERT_EQ(sink->End().choices.size(), 1u);
  EXPECT_EQ(sink->End().choices[0].reason, FinishReason::kAbort);
}

TEST_F(ExecutorTest, ALostWorkerEndsWhatRanAtOnceAndTheQueueWaitsForTheNext) {
  StartWorker();
  auto sent = Submit(Request("sent", 4, 40));
  while (sent->tokens().empty()) worker_->AnswerOne();
  auto unsent = Submit(Request("unsent", 38, 4));  // five chunks beside the other's tokens
  while (executor_.Load().requests_running < 2) {
    worker_->AnswerOne();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  auto waits = Submit(Request("waits", 4, 4));
  worker_->Die(absl::UnavailableError("killed by signal 9"));
  EXPECT_EQ(sent->End().status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(sent->End().status.message(), HasSubstr("signal 9"));
  EXPECT_EQ(unsent->End().status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(waits->HasEnded());
  StartWorker();
  AnswerUntil(*waits);
  EXPECT_EQ(waits->End().status, absl::OkStatus());
}

TEST_F(ExecutorTest, AResultThatAnswersNoPlanCostsTheWorkerItsPlace) {
  StartWorker();
  lie_ = true;
  auto sink = Submit(Request("a", 4, 4));
  worker_->AwaitAndAnswerOne();
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kUnavailable);
  unfit_.WaitForNotification();
  EXPECT_THAT(unfit_reason_.message(), HasSubstr("out of turn"));
}

TEST_F(ExecutorTest, TheWatchdogGivesUpAWorkerThatHangs) {
  StartWorker();
  auto sink = Submit(Request("a", 4, 4));
  while (executor_.Load().requests_running < 1) std::this_thread::yield();
  clock_.offset_us = 6'000'000;
  executor_.Cancel("nobody");  // no effect, and the loop sleeps on until something is posted
  auto other = std::make_shared<Sink>();
  (void)executor_.Submit(Request("b", 4, 4), other);
  unfit_.WaitForNotification();
  EXPECT_THAT(unfit_reason_.message(), HasSubstr("the limit is 5000 ms"));
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(ExecutorTest, ADeadlineInTheQueueIsKeptThoughNothingElseHappens) {
  executor_.Refuse(absl::OkStatus());  // accepted, but no worker ever comes
  GenerationRequest request = Request("a", 4, 4);
  request.deadline_us = clock_.NowUs() + 20'000;
  auto sink = Submit(request);
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(sink->End().status.message(), HasSubstr("in the queue"));
}

TEST_F(ExecutorTest, AStopEndsWhatLives) {
  StartWorker();
  auto sink = Submit(Request("a", 4, 40));
  executor_.Stop();
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tessera::engine

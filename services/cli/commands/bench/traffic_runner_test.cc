#include "services/cli/commands/bench/traffic_runner.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/manual_clock.h"

namespace tessera::cli {
namespace {

// Keeps what it is sent until the test answers it.
class HeldTarget final : public TrafficTarget {
 public:
  void Start(size_t index, TrafficEvents events) override {
    absl::MutexLock lock(&mutex_);
    indices.push_back(index);
    open_.push_back(std::move(events));
    open_most = std::max(open_most, open_.size());
  }
  // Waits for the oldest open request.
  TrafficEvents Take() {
    absl::MutexLock lock(&mutex_);
    const auto some = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !open_.empty(); };
    mutex_.Await(absl::Condition(&some));
    TrafficEvents events = std::move(open_.front());
    open_.pop_front();
    return events;
  }
  bool AwaitOpen(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto there = [this, count]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return open_.size() == count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&there), absl::Seconds(10));
  }

  std::vector<size_t> indices;
  size_t open_most = 0;

 private:
  absl::Mutex mutex_;
  std::deque<TrafficEvents> open_ ABSL_GUARDED_BY(mutex_);
};

// Answers each request at once, inside Start, with `tokens` tokens.
class InstantTarget final : public TrafficTarget {
 public:
  void Start(size_t, TrafficEvents events) override {
    events.on_tokens(2);
    events.on_done({.prompt_tokens = 7});
  }
};

TEST(RunClosedLoop, KeepsItsConcurrencyAndSendsEachIndexOnce) {
  HeldTarget target;
  services::ManualClock clock;
  std::vector<RequestRecord> records;
  std::thread run([&] { records = RunClosedLoop(target, clock, 10, 5, 2); });
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(target.AwaitOpen(2)) << i;  // full, and no third one
    target.Take().on_done({});
  }
  target.Take().on_done({});
  run.join();
  EXPECT_EQ(records.size(), 5u);
  EXPECT_EQ(target.indices, (std::vector<size_t>{10, 11, 12, 13, 14}));
  EXPECT_EQ(target.open_most, 2u);
}

TEST(RunClosedLoop, RecordsTimesTokensAndErrors) {
  HeldTarget target;
  services::ManualClock clock;
  clock.Advance(absl::Seconds(5));  // times are since the begin
  std::vector<RequestRecord> records;
  std::thread run([&] { records = RunClosedLoop(target, clock, 0, 2, 2); });
  ASSERT_TRUE(target.AwaitOpen(2));
  const TrafficEvents first = target.Take();
  const TrafficEvents second = target.Take();
  clock.Advance(absl::Milliseconds(10));
  first.on_tokens(1);
  clock.Advance(absl::Milliseconds(5));
  first.on_tokens(3);
  first.on_done({.prompt_tokens = 9, .output_tokens = 5});
  second.on_tokens(2);
  second.on_done({.error = "cut", .message = "m"});
  run.join();
  EXPECT_EQ(records[0].sent, absl::ZeroDuration());
  ASSERT_EQ(records[0].arrivals.size(), 2u);
  EXPECT_EQ(records[0].arrivals[0].at, absl::Milliseconds(10));
  EXPECT_EQ(records[0].arrivals[1].at, absl::Milliseconds(15));
  EXPECT_EQ(records[0].arrivals[1].tokens, 3u);
  EXPECT_EQ(records[0].ended, absl::Milliseconds(15));
  EXPECT_EQ(records[0].prompt_tokens, 9u);
  EXPECT_EQ(records[0].output_tokens, 5u);  // the server's count wins
  EXPECT_EQ(records[1].output_tokens, 2u);
  EXPECT_EQ(records[1].error, "cut");
  EXPECT_EQ(records[1].message, "m");
}

TEST(RunClosedLoop, ATargetThatAnswersInsideStartIsNoTrouble) {
  InstantTarget target;
  EXPECT_EQ(RunClosedLoop(target, services::RealClock(), 0, 10000, 3).size(), 10000u);
  EXPECT_TRUE(RunClosedLoop(target, services::RealClock(), 0, 0, 3).empty());
}

TEST(RunOpenLoop, SendsAtTheMomentsThoughNothingIsAnswered) {
  HeldTarget target;
  const std::vector<absl::Duration> moments = {absl::ZeroDuration(), absl::Milliseconds(3),
                                               absl::Milliseconds(30)};
  std::vector<RequestRecord> records;
  std::thread run([&] { records = RunOpenLoop(target, services::RealClock(), 0, moments); });
  ASSERT_TRUE(target.AwaitOpen(3));
  for (int i = 0; i < 3; ++i) target.Take().on_done({});
  run.join();
  ASSERT_EQ(records.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(records[i].sent, moments[i]);  // when it was due, not when it was managed
    EXPECT_GE(records[i].ended, moments[2]);
  }
}

TEST(RunOpenLoop, WhatExceedsTheLimitIsNotSentAndCountsAsFailed) {
  HeldTarget target;
  const std::vector<absl::Duration> moments(kOpenRequestsMax + 2);
  std::vector<RequestRecord> records;
  std::thread run([&] { records = RunOpenLoop(target, services::RealClock(), 0, moments); });
  ASSERT_TRUE(target.AwaitOpen(kOpenRequestsMax));
  // The last two are refused at once; answering must not make room for them before.
  absl::SleepFor(absl::Milliseconds(200));
  for (size_t i = 0; i < kOpenRequestsMax; ++i) target.Take().on_done({});
  run.join();
  EXPECT_EQ(target.indices.size(), kOpenRequestsMax);
  EXPECT_EQ(records[kOpenRequestsMax].error, "not sent");
  EXPECT_EQ(records[kOpenRequestsMax + 1].error, "not sent");
}

}  // namespace
}  // namespace tessera::cli

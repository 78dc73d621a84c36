#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "engine/ipc/grpc_worker_channel.h"
#include "engine/ipc/worker_messages.h"
#include "engine/ipc/worker_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

using testing::HasSubstr;

std::string SocketPath(const char* name) {
  return absl::StrCat("/tmp/tessera-ipc-", getpid(), "-", name, ".sock");
}

class Handler final : public WorkerHandler {
 public:
  absl::Status Load(const WorkerLoad& load,
                    const std::function<void(const WorkerProgress&)>& progress,
                    std::vector<std::string>& warnings) override {
    if (load.model_path == "broken") return absl::InvalidArgumentError("config.json: is broken");
    progress({.phase = "read", .bytes_done = 1, .bytes_total = 2});
    progress({.phase = "read", .bytes_done = 2, .bytes_total = 2});
    warnings.push_back("mtp.0.weight");
    return absl::OkStatus();
  }
  absl::StatusOr<StepResult> Execute(const StepPlan& plan) override {
    if (plan.step == fail_at) return absl::InternalError("the device failed");
    StepResult result = {.step = plan.step, .device_us = 3};
    for (const SequenceWork& work : plan.work) {
      if (!work.sample) continue;
      result.results.push_back({.sequence = work.sequence,
                                .token = work.tokens.empty() ? TokenId(7) : work.tokens.back(),
                                .logprob = -0.5f,
                                .top_logprobs = {{TokenId(1), -0.25f}, {TokenId(2), -2.0f}}});
    }
    return result;
  }
  uint64_t fail_at = 0;
};

class Events final : public WorkerEvents {
 public:
  void OnLoadProgress(const WorkerProgress& progress) override {
    absl::MutexLock lock(&mutex);
    phases.push_back(absl::StrCat(progress.phase, " ", progress.bytes_done));
  }
  void OnLoaded(const absl::Status& status, const std::vector<std::string>& w) override {
    load_status = status;
    warnings = w;
    loaded.Notify();
  }
  void OnResult(StepResult result) override {
    absl::MutexLock lock(&mutex);
    results.push_back(std::move(result));
  }
  void OnLost(const absl::Status& status) override {
    lost_status = status;
    lost.Notify();
  }
  StepResult Await(size_t index) {
    absl::MutexLock lock(&mutex);
    const auto here = [&]() { return results.size() > index; };
    mutex.Await(absl::Condition(&here));
    return results[index];
  }

  absl::Mutex mutex;
  std::vector<std::string> phases;
  std::vector<StepResult> results;
  std::vector<std::string> warnings;
  absl::Status load_status, lost_status;
  absl::Notification loaded, lost;
};

StepPlan Plan(uint64_t step) {
  return {.step = step,
          .work = {{.sequence = SequenceId(5),
                    .position = 3,
                    .tokens = {TokenId(9)},
                    .new_blocks = {BlockId(1)},
                    .sample = true}}};
}

TEST(WorkerIpc, LoadsWithProgressThenAnswersPlansInOrder) {
  Handler handler;
  auto server = WorkerServer::Start(SocketPath("order"), handler);
  ASSERT_EQ(server.status(), absl::OkStatus());
  Events events;
  GrpcWorkerChannel channel(SocketPath("order"), events);
  channel.StartLoad({.model_path = "model", .slots = 2, .blocks = 8});
  events.loaded.WaitForNotification();
  ASSERT_EQ(events.load_status, absl::OkStatus());
  EXPECT_THAT(events.phases, testing::ElementsAre("read 1", "read 2", "ready 0"));
  EXPECT_THAT(events.warnings, testing::ElementsAre("mtp.0.weight"));
  for (uint64_t step = 1; step <= 20; ++step) {
    channel.Send(Plan(step));
    if (step % 2 == 0) events.Await(step - 1);  // two in flight
  }
  const StepResult last = events.Await(19);
  EXPECT_EQ(last.step, 20u);
  ASSERT_EQ(last.results.size(), 1u);
  EXPECT_EQ(last.results[0].token, TokenId(9));
  EXPECT_EQ(last.results[0].top_logprobs[1].token, TokenId(2));
}

TEST(WorkerIpc, TheEngineLeavingEndsTheWorker) {
  Handler handler;
  auto server = WorkerServer::Start(SocketPath("leave"), handler);
  Events events;
  {
    GrpcWorkerChannel channel(SocketPath("leave"), events);
    channel.StartLoad({.model_path = "model"});
    events.loaded.WaitForNotification();
  }
  EXPECT_EQ((*server)->Wait(), absl::OkStatus());
}

TEST(WorkerIpc, AFailedLoadReachesTheEngineWithItsReason) {
  Handler handler;
  auto server = WorkerServer::Start(SocketPath("broken"), handler);
  Events events;
  GrpcWorkerChannel channel(SocketPath("broken"), events);
  channel.StartLoad({.model_path = "broken"});
  events.loaded.WaitForNotification();
  EXPECT_EQ(events.load_status, absl::InvalidArgumentError("config.json: is broken"));
  EXPECT_EQ((*server)->Wait(), absl::InvalidArgumentError("config.json: is broken"));
}

TEST(WorkerIpc, ADeviceErrorEndsBothEndsWithTheSameReason) {
  Handler handler;
  handler.fail_at = 2;
  auto server = WorkerServer::Start(SocketPath("device"), handler);
  Events events;
  GrpcWorkerChannel channel(SocketPath("device"), events);
  channel.StartLoad({.model_path = "model"});
  events.loaded.WaitForNotification();
  channel.Send(Plan(1));
  events.Await(0);
  channel.Send(Plan(2));
  events.lost.WaitForNotification();
  EXPECT_THAT(events.lost_status.message(), HasSubstr("the device failed"));
  EXPECT_THAT((*server)->Wait().message(), HasSubstr("the device failed"));
}

TEST(WorkerIpc, AVanishedServerIsALoss) {
  Handler handler;
  auto server = WorkerServer::Start(SocketPath("vanish"), handler);
  Events events;
  GrpcWorkerChannel channel(SocketPath("vanish"), events);
  channel.StartLoad({.model_path = "model"});
  events.loaded.WaitForNotification();
  server->reset();
  events.lost.WaitForNotification();
  EXPECT_FALSE(events.lost_status.ok());
}

TEST(WorkerIpc, RefusesAPathThatNoSocketCanHave) {
  Handler handler;
  EXPECT_THAT(WorkerServer::Start(std::string(200, 'x'), handler).status().message(),
              HasSubstr("--socket"));
}

TEST(WorkerMessages, APlanSurvivesTheWire) {
  StepPlan plan = Plan(3);
  plan.ended = {SequenceId(1), SequenceId(2)};
  SequenceStart start = {.sequence = SequenceId(5), .slot = SlotId(3), .prompt_tokens = 17};
  start.sampling = {.temperature = 0.25f,
                    .top_k = 4,
                    .top_p = 0.5f,
                    .min_p = 0.125f,
                    .repetition_penalty = 1.5f,
                    .presence_penalty = -1,
                    .frequency_penalty = 2,
                    .logit_bias = {{TokenId(4), -100.0f}},
                    .seed = ~0ull,
                    .min_tokens = 9,
                    .end_ids = {TokenId(2)},
                    .logprobs = 0};
  plan.started = {start};
  worker::v1::StepPlan proto;
  ToProto(plan, proto);
  const absl::StatusOr<StepPlan> back = FromProto(proto);
  ASSERT_EQ(back.status(), absl::OkStatus());
  EXPECT_EQ(back->step, 3u);
  EXPECT_EQ(back->ended, plan.ended);
  ASSERT_EQ(back->started.size(), 1u);
  const SamplingParams& sampling = back->started[0].sampling;
  EXPECT_EQ(back->started[0].slot, SlotId(3));
  EXPECT_EQ(sampling.seed, ~0ull);
  EXPECT_EQ(sampling.logit_bias, start.sampling.logit_bias);
  EXPECT_EQ(sampling.end_ids, start.sampling.end_ids);
  EXPECT_EQ(sampling.logprobs, std::optional<uint32_t>(0));
  ASSERT_EQ(back->work.size(), 1u);
  EXPECT_EQ(back->work[0].tokens, plan.work[0].tokens);
  EXPECT_EQ(back->work[0].new_blocks, plan.work[0].new_blocks);
}

TEST(WorkerMessages, RefusesWhatIsOutOfBoundsAndNamesIt) {
  worker::v1::StepPlan plan;
  auto& sampling = *plan.add_started()->mutable_sampling();
  sampling.set_logprobs(65);
  EXPECT_THAT(FromProto(plan).status().message(), HasSubstr("logprobs is 65"));
  sampling.set_logprobs(-1);
  sampling.add_bias_ids(1);
  EXPECT_THAT(FromProto(plan).status().message(), HasSubstr("differ in length"));
  sampling.clear_bias_ids();
  sampling.set_top_p(std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(FromProto(plan).status().message(), HasSubstr("not finite"));
  worker::v1::LoadRequest load;
  ToProto(WorkerLoad{}, load);
  EXPECT_EQ(FromProto(load).status(), absl::OkStatus());
  load.set_rank(1);
  EXPECT_THAT(FromProto(load).status().message(), HasSubstr("rank is 1"));
  load.set_rank(0);
  load.set_slots(0);
  EXPECT_THAT(FromProto(load).status().message(), HasSubstr("slots is 0"));
}

// Not a test of speed: prints what a round trip costs, and fails only when it is out of all bounds.
TEST(WorkerIpc, PrintsTheCostOfARoundTrip) {
  Handler handler;
  auto server = WorkerServer::Start(SocketPath("speed"), handler);
  Events events;
  GrpcWorkerChannel channel(SocketPath("speed"), events);
  channel.StartLoad({.model_path = "model"});
  events.loaded.WaitForNotification();
  std::vector<double> us;
  for (uint64_t step = 1; step <= 2000; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    channel.Send(Plan(step));
    events.Await(step - 1);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    us.push_back(took.count());
  }
  std::sort(us.begin(), us.end());
  std::printf("round trip: median %.0f us, p99 %.0f us, best %.0f us\n", us[us.size() / 2],
              us[us.size() * 99 / 100], us[0]);
  EXPECT_LT(us[us.size() / 2], 20000);
}

}  // namespace
}  // namespace tessera::engine

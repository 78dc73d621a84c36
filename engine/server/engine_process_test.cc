// tessera-engine and tessera-worker as processes, on the demo model: the reference's tokens, and
// what happens when a worker dies or hangs, a caller goes away, or a request is wrong.

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/server/worker_process.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tessera/engine/v1/engine.grpc.pb.h"

namespace tessera::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

constexpr char kModel[] = "deploy/demo_model";

struct Answer {
  std::vector<uint32_t> ids;
  v1::GenerateFinished finished;
  grpc::Status status;
};

class EngineProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    char folder[] = "/tmp/tessera-engine-test-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override {
    engine_.reset();
    std::filesystem::remove_all(folder_);
  }

  void StartEngine(std::vector<std::string> flags = {}) {
    const std::string address = absl::StrCat("unix:", folder_, "/engine.sock");
    std::vector<std::string> arguments = {
        "--model",          kModel,
        "--bin-dir",        "engine/worker",
        "--listen",         address,
        "--log-level",      "error",
        "--admin-listen",   absl::StrCat("unix:", folder_, "/admin.sock"),
        "--metrics-listen", "127.0.0.1:0"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    auto process = WorkerProcess::Spawn("engine/server/tessera-engine", arguments);
    ASSERT_TRUE(process.ok()) << process.status();
    engine_ = std::make_unique<WorkerProcess>(*std::move(process));
    // A channel whose first attempt fails pauses for seconds before the next.
    Await([&] { return std::filesystem::exists(folder_ + "/engine.sock"); });
    stub_ = v1::EngineService::NewStub(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    AwaitState(v1::MODEL_STATE_READY);
  }

  static void Await(const std::function<bool()>& happened) {
    const auto limit = steady_clock::now() + seconds(30);
    while (!happened()) {
      ASSERT_LT(steady_clock::now(), limit) << "it never happened";
      std::this_thread::sleep_for(milliseconds(10));
    }
  }

  void AwaitState(v1::ModelState state) {
    Await([&] {
      grpc::ClientContext context;
      v1::GetModelInfoResponse info;
      return stub_->GetModelInfo(&context, {}, &info).ok() && info.state() == state;
    });
  }

  v1::GetLoadResponse Load() {
    grpc::ClientContext context;
    v1::GetLoadResponse load;
    EXPECT_TRUE(stub_->GetLoad(&context, {}, &load).ok());
    return load;
  }

  static v1::GenerateRequest Greedy(const std::vector<uint32_t>& prompt, uint32_t max_tokens) {
    v1::GenerateRequest request;
    request.mutable_prompt()->mutable_ids()->Add(prompt.begin(), prompt.end());
    request.mutable_sampling()->set_temperature(0);
    request.mutable_sampling()->set_max_tokens(max_tokens);
    return request;
  }
  // One that would run for seconds.
  static v1::GenerateRequest Long() {
    v1::GenerateRequest request = Greedy({5, 6, 7}, 8000);
    request.mutable_sampling()->set_ignore_eos(true);
    return request;
  }

  Answer Generate(const v1::GenerateRequest& request, grpc::ClientContext& context,
                  const std::function<void(size_t)>& on_token = {}) {
    Answer answer;
    auto reader = stub_->Generate(&context, request);
    v1::GenerateResponse response;
    int started = 0;
    while (reader->Read(&response)) {
      if (response.has_started()) ++started;
      if (response.has_finished()) answer.finished = response.finished();
      if (!response.has_delta()) continue;
      EXPECT_EQ(started, 1) << "started comes first, once";
      for (const auto& token : response.delta().tokens()) answer.ids.push_back(token.id());
      if (on_token) on_token(answer.ids.size());
    }
    answer.status = reader->Finish();
    return answer;
  }
  Answer Generate(const v1::GenerateRequest& request) {
    grpc::ClientContext context;
    return Generate(request, context);
  }

  // The one child of the engine.
  pid_t Worker() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      int pid = 0;
      if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
      std::ifstream stat(entry.path() / "stat");
      std::string line;
      std::getline(stat, line);
      const size_t end = line.rfind(')');
      if (end == std::string::npos) continue;
      if (line.substr(end + 4, line.find(' ', end + 4) - end - 4) ==
          std::to_string(engine_->pid())) {
        return pid;
      }
    }
    return -1;
  }

  void ExpectIdle() {
    Await([&] { return Load().slots_used() == 0 && Load().requests_running() == 0; });
    EXPECT_EQ(Load().kv_usage(), 0.0f);
  }

  std::string folder_;
  std::unique_ptr<WorkerProcess> engine_;
  std::unique_ptr<v1::EngineService::Stub> stub_;
};

TEST_F(EngineProcessTest, AnswersTheDemoPromptsAsTheReferenceDoesAlsoSeveralAtOnce) {
  StartEngine();
  std::ifstream file(absl::StrCat(kModel, "/demo_prompts.jsonl"));
  std::vector<nlohmann::json> prompts;
  for (std::string line; std::getline(file, line);) prompts.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(prompts.size(), 40u);
  std::vector<Answer> answers(prompts.size());
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (size_t i = caller; i < prompts.size(); i += 4) {
        answers[i] = Generate(Greedy(prompts[i]["prompt_ids"].get<std::vector<uint32_t>>(), 400));
      }
    });
  }
  for (std::thread& thread : callers) thread.join();
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_TRUE(answers[i].status.ok()) << answers[i].status.error_message();
    EXPECT_EQ(answers[i].ids, prompts[i]["answer_ids"].get<std::vector<uint32_t>>())
        << prompts[i]["id"];
    ASSERT_EQ(answers[i].finished.choices_size(), 1);
    EXPECT_EQ(answers[i].finished.choices(0).reason(), v1::FINISH_REASON_STOP);
  }
  ExpectIdle();
}

TEST_F(EngineProcessTest, AKilledWorkerEndsStreamsWithinASecondAndTheNextRequestWorks) {
  StartEngine();
  const pid_t worker = Worker();
  ASSERT_GT(worker, 0);
  steady_clock::time_point killed;
  grpc::ClientContext context;
  const Answer answer = Generate(Long(), context, [&](size_t tokens) {
    if (tokens != 10) return;
    killed = steady_clock::now();
    ::kill(worker, SIGKILL);
  });
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("killed by signal 9"));
  EXPECT_LT(steady_clock::now() - killed, seconds(1));
  AwaitState(v1::MODEL_STATE_READY);
  EXPECT_NE(Worker(), worker);
  EXPECT_TRUE(Generate(Greedy({5, 6, 7}, 3)).status.ok());
  ExpectIdle();
}

TEST_F(EngineProcessTest, TheWatchdogReplacesAWorkerThatHangs) {
  StartEngine({"--step-timeout-s", "0.5"});
  const pid_t worker = Worker();
  grpc::ClientContext context;
  const Answer answer = Generate(Long(), context, [&](size_t tokens) {
    if (tokens == 10) ::kill(worker, SIGSTOP);
  });
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("the limit is 500 ms"));
  AwaitState(v1::MODEL_STATE_READY);
  EXPECT_TRUE(Generate(Greedy({5, 6, 7}, 3)).status.ok());
}

TEST_F(EngineProcessTest, ACallerThatGoesAwayAndADeadlineFreeEverything) {
  StartEngine();
  grpc::ClientContext cancelled;
  Generate(Long(), cancelled, [&](size_t tokens) {
    if (tokens == 5) cancelled.TryCancel();
  });
  ExpectIdle();
  grpc::ClientContext late;
  late.set_deadline(std::chrono::system_clock::now() + milliseconds(200));
  EXPECT_EQ(Generate(Long(), late).status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ExpectIdle();
}

TEST_F(EngineProcessTest, AbortFinishesARequestByItsId) {
  StartEngine();
  v1::GenerateRequest request = Long();
  request.set_request_id("mine");
  v1::AbortResponse aborted;
  grpc::ClientContext context;
  const Answer answer = Generate(request, context, [&](size_t tokens) {
    if (tokens != 5) return;
    EXPECT_THAT(Generate(request).status.error_message(), HasSubstr("request_id: names a request"));
    grpc::ClientContext abort;
    v1::AbortRequest ids;
    ids.add_request_ids("mine");
    ids.add_request_ids("nobody's");
    EXPECT_TRUE(stub_->Abort(&abort, ids, &aborted).ok());
  });
  EXPECT_TRUE(answer.status.ok());
  ASSERT_EQ(aborted.aborted_request_ids_size(), 1);
  ASSERT_EQ(answer.finished.choices_size(), 1);
  EXPECT_EQ(answer.finished.choices(0).reason(), v1::FINISH_REASON_ABORT);
  EXPECT_EQ(answer.finished.choices(0).completion_tokens(), answer.ids.size());
}

TEST_F(EngineProcessTest, AnswersDoNotDependOnHowStepsAreCutOrOverlapped) {
  const v1::GenerateRequest request = [] {
    v1::GenerateRequest r = Greedy({}, 60);
    for (uint32_t i = 0; i < 100; ++i) r.mutable_prompt()->add_ids(300 + i * 7 % 900);
    r.mutable_sampling()->set_temperature(1);
    r.mutable_sampling()->set_top_p(1);
    r.mutable_sampling()->set_seed(42);
    r.mutable_sampling()->set_ignore_eos(true);
    r.mutable_sampling()->set_logprobs(2);
    return r;
  }();
  StartEngine();
  const Answer usual = Generate(request);
  ASSERT_TRUE(usual.status.ok()) << usual.status.error_message();
  EXPECT_EQ(usual.ids.size(), 60u);
  engine_.reset();
  std::filesystem::remove(folder_ + "/engine.sock");
  std::filesystem::remove(folder_ + "/admin.sock");
  StartEngine({"--no-async-scheduling", "--max-sequences", "2", "--step-tokens", "7",
               "--block-tokens", "4", "--kv-blocks", "50"});
  EXPECT_EQ(Generate(request).ids, usual.ids);
}

TEST_F(EngineProcessTest, ABadModelIsOneClearMessageAndExitCodeOne) {
  const auto run = [](std::vector<std::string> arguments) {
    auto process = WorkerProcess::Spawn("engine/server/tessera-engine", arguments);
    EXPECT_TRUE(process.ok());
    std::optional<std::string> end;
    Await([&] { return (end = process->PollEnd()).has_value(); });
    return *end;
  };
  EXPECT_EQ(run({"--model", folder_}), "exited with code 1");
  EXPECT_EQ(run({"--model", kModel, "--workers", "2"}), "exited with code 2");
  EXPECT_EQ(run({"--model", kModel, "--kv-memory", "much"}), "exited with code 2");
  // The configuration is read by the engine, the weights by the worker: its refusal is final, too.
  std::filesystem::copy(absl::StrCat(kModel, "/config.json"), folder_ + "/config.json");
  std::ofstream(folder_ + "/model.safetensors") << "torn";
  EXPECT_EQ(run({"--model", folder_, "--bin-dir", "engine/worker", "--listen",
                 absl::StrCat("unix:", folder_, "/e.sock"), "--admin-listen",
                 absl::StrCat("unix:", folder_, "/a.sock"), "--metrics-listen", "127.0.0.1:0"}),
            "exited with code 1");
}

}  // namespace
}  // namespace tessera::engine

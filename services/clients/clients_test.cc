// The gRPC clients against a real server that comes and goes, and the fakes.

#include <atomic>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "services/clients/channel.h"
#include "services/clients/engine_client.h"
#include "services/clients/fake_engine_client.h"
#include "services/clients/fake_parser_client.h"
#include "services/clients/fake_tokenizer_client.h"
#include "services/common/health.h"
#include "services/common/status_map.h"
#include "services/common/stream/server_stream.h"
#include "services/common/stream/unary.h"
#include "tessera/engine/v1/engine.grpc.pb.h"

namespace tessera::services {
namespace {

constexpr char kEngine[] = "tessera.engine.v1.EngineService";
constexpr absl::Duration kPatience = absl::Seconds(20);

class TinyEngine final : public engine::v1::EngineService::CallbackService {
 public:
  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const engine::v1::GetModelInfoRequest*,
                                         engine::v1::GetModelInfoResponse* response) override {
    response->set_model("tiny");
    return Reply(context, absl::OkStatus());
  }
};

// A server on a fixed port that can be stopped and started again.
struct Process {
  explicit Process(int wanted_port) : health(std::make_unique<Health>()) {
    health->Set(kEngine, false);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(wanted_port),
                             grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    builder.RegisterService(health->service());
    server = builder.BuildAndStart();
  }
  ~Process() { server->Shutdown(std::chrono::system_clock::now()); }

  int port = 0;
  TinyEngine service;
  std::unique_ptr<Health> health;
  std::unique_ptr<grpc::Server> server;
};

absl::StatusOr<std::string> ModelOf(EngineClient& client) {
  absl::Notification done;
  absl::StatusOr<std::string> model;
  client.GetModelInfo({}, [&](absl::StatusOr<engine::v1::GetModelInfoResponse> info) {
    if (info.ok()) {
      model = info->model();
    } else {
      model = info.status();
    }
    done.Notify();
  });
  EXPECT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
  return model;
}

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + kPatience;
  while (!condition()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

TEST(EngineClient, FailsAtOnceWithoutAPeerAndFindsItWithinASecondOfItsReturn) {
  auto process = std::make_unique<Process>(0);
  const int port = process->port;
  auto client = MakeEngineClient(*MakeChannel("127.0.0.1:" + std::to_string(port)));
  EXPECT_EQ(*ModelOf(*client), "tiny");
  process = nullptr;
  for (int i = 0; i < 20; ++i) {
    const absl::Time begin = absl::Now();
    EXPECT_EQ(ModelOf(*client).status().code(), absl::StatusCode::kUnavailable);
    EXPECT_LT(absl::Now() - begin, absl::Seconds(1));
    absl::SleepFor(absl::Milliseconds(50));
  }
  process = std::make_unique<Process>(port);
  const absl::Time back = absl::Now();
  EXPECT_TRUE(Eventually([&] { return ModelOf(*client).ok(); }));
  EXPECT_LT(absl::Now() - back, absl::Milliseconds(1500));
}

TEST(EngineClient, WatchFollowsHealthDeathAndReturn) {
  auto process = std::make_unique<Process>(0);
  const int port = process->port;
  auto client = MakeEngineClient(*MakeChannel("127.0.0.1:" + std::to_string(port)));
  std::atomic<int> serving = -1;
  std::atomic<int> changes = 0;
  auto watch = client->Watch([&](bool now) {
    serving = now;
    ++changes;
  });
  EXPECT_TRUE(Eventually([&] { return serving == 0; }));
  process->health->Set(kEngine, true);
  EXPECT_TRUE(Eventually([&] { return serving == 1; }));
  process = nullptr;
  EXPECT_TRUE(Eventually([&] { return serving == 0; }));
  process = std::make_unique<Process>(port);
  process->health->Set(kEngine, true);
  EXPECT_TRUE(Eventually([&] { return serving == 1; }));
  EXPECT_EQ(changes, 4);
  watch = nullptr;
  process->health->Set(kEngine, false);
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(changes, 4);
}

TEST(Channel, NeedsATarget) {
  EXPECT_EQ(MakeChannel("").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PeerStatus, ALostPeerIsUnavailableBeforeAndAbortedAfterTheFirstToken) {
  const absl::Status lost = absl::UnavailableError("Socket closed");
  EXPECT_EQ(PeerStatus(lost, "engine", false).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(PeerStatus(lost, "engine", false).message(), "the engine cannot be reached; try again");
  EXPECT_EQ(PeerStatus(lost, "engine", true).code(), absl::StatusCode::kAborted);
  const absl::Status draining =
      WithRetryDelay(absl::UnavailableError("the engine is draining"), absl::Seconds(1));
  EXPECT_EQ(PeerStatus(draining, "engine", false), draining);
  EXPECT_EQ(PeerStatus(draining, "engine", true).message(),
            "the engine is draining after tokens had been sent");
  const absl::Status bad = absl::InvalidArgumentError("x");
  EXPECT_EQ(PeerStatus(bad, "engine", true), bad);
}

TEST(FakeStream, DeliversPausesAndEndsLikeARealOne) {
  std::vector<int> got;
  Flow answer = Flow::kContinue;
  int done = 0;
  absl::Status status;
  FakeEngineClient::GenerateStream stream({.on_message =
                                               [&](engine::v1::GenerateResponse& message) {
                                                 got.push_back(message.delta().choice_index());
                                                 return answer;
                                               },
                                           .on_done =
                                               [&](const absl::Status& end) {
                                                 status = end;
                                                 ++done;
                                               }});
  const auto send = [&](int number) {
    engine::v1::GenerateResponse message;
    message.mutable_delta()->set_choice_index(number);
    stream.Send(std::move(message));
  };
  send(1);
  answer = Flow::kPause;
  send(2);
  send(3);
  EXPECT_EQ(got, (std::vector<int>{1, 2}));
  EXPECT_TRUE(stream.paused());
  stream.Finish(absl::OkStatus());
  EXPECT_EQ(done, 0);
  stream.Resume();
  EXPECT_EQ(got, (std::vector<int>{1, 2, 3}));
  stream.Cancel();
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(status.ok());
}

TEST(Fakes, AnswerWithoutAScript) {
  FakeEngineClient engine;
  EXPECT_TRUE(ModelOf(engine).ok());
  FakeTokenizerClient tokenizer;
  FakeParserClient parser;
  int done = 0;
  tokenizer.Generate({}, {}, {.on_message = nullptr, .on_done = [&](const auto&) { ++done; }});
  parser.ChatStream({}, {}, {.on_message = nullptr, .on_done = [&](const auto&) { ++done; }});
  EXPECT_EQ(done, 2);
  bool serving = false;
  auto watch = engine.Watch([&](bool now) { serving = now; });
  EXPECT_TRUE(serving);
  engine.health.Set(false);
  EXPECT_FALSE(serving);
}

}  // namespace
}  // namespace tessera::services

#include "services/common/server_host.h"

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "services/common/stream/server_stream.h"

namespace tessera::services {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using Stub = grpc::health::v1::Health::Stub;

constexpr char kName[] = "test.v1.Service";

ServerOptions TestOptions() {
  return {.listen = "127.0.0.1:0",
          .admin_listen = "",
          .metrics_listen = "127.0.0.1:0",
          .log_level = "error",
          .log_format = "text",
          .drain_timeout_s = 5};
}

std::unique_ptr<Stub> StubFor(const std::string& address) {
  return grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
}

HealthCheckResponse::ServingStatus Check(Stub& stub, const std::string& name) {
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service(name);
  HealthCheckResponse response;
  const grpc::Status status = stub.Check(&context, request, &response);
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
    return HealthCheckResponse::SERVICE_UNKNOWN;
  }
  return status.ok() ? response.status() : HealthCheckResponse::UNKNOWN;
}

TEST(ServerHost, HealthTellsTheTruthPerName) {
  auto host = *ServerHost::Create("test", TestOptions());
  host->health().Set(kName, false);
  ASSERT_TRUE(host->Start().ok());
  auto stub = StubFor(host->address());
  EXPECT_EQ(Check(*stub, ""), HealthCheckResponse::SERVING);
  EXPECT_EQ(Check(*stub, kName), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Check(*stub, "nobody"), HealthCheckResponse::SERVICE_UNKNOWN);
  host->health().Set(kName, true);
  EXPECT_EQ(Check(*stub, kName), HealthCheckResponse::SERVING);
}

TEST(ServerHost, AWatcherHearsEachChangeAndTheDrainThenItsStreamEnds) {
  auto host = *ServerHost::Create("test", TestOptions());
  host->health().Set(kName, false);
  ASSERT_TRUE(host->Start().ok());
  auto stub = StubFor(host->address());
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service(kName);
  HealthCheckResponse response;
  auto reader = stub->Watch(&context, request);
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  host->health().Set(kName, true);
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);

  const absl::Time begin = absl::Now();
  std::thread stopper([&] { host->Stop(absl::Seconds(20)); });
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  stopper.join();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));  // a watcher does not hold the drain up
  EXPECT_FALSE(host->health().Serving(kName));
  host->health().Set(kName, true);  // too late
  EXPECT_FALSE(host->health().Serving(kName));
}

TEST(ServerHost, APortInUseIsOneClearError) {
  auto first = *ServerHost::Create("first", TestOptions());
  ASSERT_TRUE(first->Start().ok());
  ServerOptions options = TestOptions();
  options.listen = first->address();
  auto second = *ServerHost::Create("second", options);
  const absl::Status status = second->Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "--listen: address " + first->address() +
                                  " is in use by another process; stop it or give another port");
  options = TestOptions();
  options.metrics_listen = first->metrics_address();
  auto third = *ServerHost::Create("third", options);
  EXPECT_NE(third->Start().message().find("--metrics-listen: address"), std::string::npos);
}

TEST(ServerHost, AUnixSocketIsAnAddressToo) {
  ServerOptions options = TestOptions();
  char directory[] = "/tmp/tessera_XXXXXX";  // short: the system allows 107 bytes
  ASSERT_NE(mkdtemp(directory), nullptr);
  options.listen = "unix:" + std::string(directory) + "/s";
  auto host = *ServerHost::Create("test", options);
  ASSERT_TRUE(host->Start().ok());
  EXPECT_EQ(host->address(), options.listen);
  auto stub = StubFor(host->address());
  EXPECT_EQ(Check(*stub, ""), HealthCheckResponse::SERVING);
  host = nullptr;
  rmdir(directory);
  options.listen = "unix:/tmp/" + std::string(200, 'x');
  EXPECT_NE((*ServerHost::Create("test", options))->Start().message().find("the limit is 107"),
            std::string::npos);
}

TEST(ServerHost, BadFlagsAreNamed) {
  ServerOptions options = TestOptions();
  options.listen = "localhost";
  EXPECT_NE(ServerHost::Create("x", options).status().message().find("--listen: is \"localhost\""),
            std::string::npos);
  options = TestOptions();
  options.log_format = "xml";
  EXPECT_NE(ServerHost::Create("x", options).status().message().find("--log-format"),
            std::string::npos);
  options = TestOptions();
  options.drain_timeout_s = -1;
  EXPECT_NE(ServerHost::Create("x", options).status().message().find("--drain-timeout-s"),
            std::string::npos);
}

TEST(ServerHost, RunDrainsOnSigtermAndReturnsZero) {
  auto host = *ServerHost::Create("test", TestOptions());
  ASSERT_TRUE(host->Start().ok());
  bool drained = false;
  bool stopped = false;
  host->OnDrain([&] { drained = !stopped; });
  host->OnStopped([&] { stopped = true; });
  kill(getpid(), SIGTERM);  // blocked since Create, waits for Run
  EXPECT_EQ(host->Run(), kExitOk);
  EXPECT_TRUE(drained);
  EXPECT_TRUE(stopped);
}

TEST(ServerHost, ARequestedStopReturnsItsExitCode) {
  auto host = *ServerHost::Create("test", TestOptions());
  ASSERT_TRUE(host->Start().ok());
  host->RequestStop(kExitFailure);
  EXPECT_EQ(host->Run(), kExitFailure);
}

// A service whose Watch never ends by itself.
class EndlessService final : public grpc::health::v1::Health::CallbackService {
 public:
  grpc::ServerWriteReactor<HealthCheckResponse>* Watch(grpc::CallbackServerContext* context,
                                                       const HealthCheckRequest*) override {
    auto stream = ServerStream<HealthCheckResponse>::Start(
        context, {}, {.on_cancel = [this] { cancelled.Notify(); }});
    stream->Push(HealthCheckResponse());
    return stream->reactor();
  }
  absl::Notification cancelled;
};

TEST(ServerHost, CallsThatOutliveTheDrainAreCancelled) {
  // Not through the host, whose own health service has this name: the rule is gRPC's Shutdown.
  EndlessService service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  auto server = builder.BuildAndStart();
  auto stub = StubFor("127.0.0.1:" + std::to_string(port));
  grpc::ClientContext context;
  auto reader = stub->Watch(&context, {});
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  EXPECT_TRUE(service.cancelled.WaitForNotificationWithTimeout(absl::Seconds(5)));
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace tessera::services

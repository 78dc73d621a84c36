#include "services/common/server_host.h"

#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "absl/base/internal/raw_logging.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"
#include "prometheus/exposer.h"
#include "services/common/credentials.h"
#include "services/common/field_error.h"

namespace tessera::services {
namespace {

constexpr int kMetricsThreads = 2;

bool IsUnixAddress(const std::string& address) { return address.rfind("unix:", 0) == 0; }

std::pair<std::string, std::string> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return {host, address.substr(colon + 1)};
}

std::string WithPort(const std::string& address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
}

// Whether the address can be listened on, tried by doing so: gRPC itself only says that it could
// not. Between this and gRPC's own attempt another process may take the port; gRPC then fails with
// a message that is less clear, which is all.
absl::Status TryAddress(const std::string& flag, const std::string& address) {
  if (IsUnixAddress(address)) {
    constexpr size_t kPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;
    const size_t bytes = address.size() - std::strlen("unix:");
    if (bytes <= kPathBytesMax) return absl::OkStatus();
    return InvalidField(flag, absl::StrCat("path has ", bytes, " bytes; the limit is ",
                                           kPathBytesMax, " for a Unix socket"));
  }
  const auto [host, port] = SplitAddress(address);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return FieldError(absl::StatusCode::kInvalidArgument, flag,
                      absl::StrCat("address ", address, " is not known: ", gai_strerror(error)));
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::OkStatus();  // gRPC will say
  const absl::Cleanup close_fd = [fd] { close(fd); };
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 1) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  if (error == EADDRINUSE) {
    return FieldError(absl::StatusCode::kFailedPrecondition, flag,
                      absl::StrCat("address ", address,
                                   " is in use by another process; stop it or give another port"));
  }
  return FieldError(absl::StatusCode::kFailedPrecondition, flag,
                    absl::StrCat("cannot listen on ", address, ": ", strerror(error)));
}

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

gpr_timespec After(absl::Duration duration) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(duration), GPR_TIMESPAN));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerHost>> ServerHost::Create(std::string service_name,
                                                               const ServerOptions& options) {
  if (absl::Status status = ValidateServerOptions(options); !status.ok()) return status;
  auto log = std::make_unique<Logger>(Logger::Options{.service = service_name,
                                                      .level = *ParseLogLevel(options.log_level),
                                                      .format = *ParseLogFormat(options.log_format),
                                                      .sink = nullptr});
  // Debian builds Abseil with its deadlock detector on: a global lock inside each lock, some 5 % of
  // a token's way through a process. gRPC's locks are Abseil's too.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return std::unique_ptr<ServerHost>(
      new ServerHost(std::move(service_name), options, std::move(log)));
}

ServerHost::ServerHost(std::string service_name, const ServerOptions& options,
                       std::unique_ptr<Logger> log)
    : service_name_(std::move(service_name)),
      options_(options),
      log_(std::move(log)),
      health_(std::make_unique<Health>()),
      registry_(std::make_shared<prometheus::Registry>()),
      request_ids_(RequestIds::SeedFromOs()) {
  ABSL_RAW_CHECK(pipe(stop_pipe_) == 0, "a pipe");
  RouteGrpcLogs(log_.get());
}

ServerHost::~ServerHost() {
  Stop(absl::ZeroDuration());
  RouteGrpcLogs(nullptr);
  close(stop_pipe_[0]);
  close(stop_pipe_[1]);
}

void ServerHost::AddService(grpc::Service* service, std::string full_name) {
  services_.push_back(service);
  health_->Set(full_name, false);
}

void ServerHost::AddAdminService(grpc::Service* service, std::string full_name) {
  admin_services_.push_back(service);
  health_->Set(full_name, false);
}

absl::StatusOr<std::unique_ptr<grpc::Server>> ServerHost::Listen(
    const std::string& flag, const std::string& address,
    const std::vector<grpc::Service*>& services, std::string& bound_address) {
  if (absl::Status status = TryAddress(flag, address); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> credentials =
      MakeServerCredentials(options_.tls);
  if (!credentials.ok()) return credentials.status();

  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, *credentials, &port);
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
  // Two servers that share a port by accident are worse than one that fails to start.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(kPingIntervalMin));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kKeepaliveTime));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kKeepaliveTimeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(kConnectionAgeMax));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                             Milliseconds(kConnectionAgeGrace));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kConcurrentStreamsPerConnectionMax);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamWindowBytes);
  grpc::ResourceQuota quota(service_name_);
  quota.Resize(kGrpcMemoryBytesMax);
  builder.SetResourceQuota(quota);
  for (grpc::Service* const service : services) builder.RegisterService(service);
  builder.RegisterService(health_->service());

  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || (port == 0 && !IsUnixAddress(address))) {
    return FieldError(absl::StatusCode::kFailedPrecondition, flag,
                      absl::StrCat("cannot listen on ", address));
  }
  bound_address = IsUnixAddress(address) ? address : WithPort(address, port);
  return server;
}

absl::Status ServerHost::Start() {
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  absl::StatusOr<std::unique_ptr<grpc::Server>> server =
      Listen(options_.listen_flag, options_.listen, services_, address_);
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  if (!options_.admin_listen.empty()) {
    absl::StatusOr<std::unique_ptr<grpc::Server>> admin =
        Listen("--admin-listen", options_.admin_listen, admin_services_, admin_address_);
    if (!admin.ok()) {
      Stop(absl::ZeroDuration());
      return admin.status();
    }
    admin_server_ = *std::move(admin);
  }
  if (!options_.metrics_listen.empty()) {
    absl::Status status = TryAddress("--metrics-listen", options_.metrics_listen);
    if (status.ok()) {
      try {  // the exposer throws when it cannot listen
        exposer_ = std::make_unique<prometheus::Exposer>(options_.metrics_listen, kMetricsThreads);
      } catch (const std::exception& error) {
        status = FieldError(
            absl::StatusCode::kFailedPrecondition, "--metrics-listen",
            absl::StrCat("cannot listen on ", options_.metrics_listen, ": ", error.what()));
      }
    }
    if (!status.ok()) {
      Stop(absl::ZeroDuration());
      return status;
    }
    exposer_->RegisterCollectable(registry_);
    metrics_address_ = WithPort(options_.metrics_listen, exposer_->GetListeningPorts().at(0));
  }
  log_->Info("listening", {{"address", address_},
                           {"admin_address", admin_address_},
                           {"metrics_address", metrics_address_}});
  return absl::OkStatus();
}

int ServerHost::Run() {
  const sigset_t signals = StopSignals();
  const int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
  ABSL_RAW_CHECK(signal_fd >= 0, "a signalfd");
  const absl::Cleanup close_fd = [signal_fd] { close(signal_fd); };
  pollfd waits[] = {{signal_fd, POLLIN, 0}, {stop_pipe_[0], POLLIN, 0}};
  while (poll(waits, 2, -1) < 0 && errno == EINTR) {
  }
  int exit_code = kExitOk;
  if (waits[1].revents != 0) {
    unsigned char byte = kExitFailure;
    if (read(stop_pipe_[0], &byte, 1) == 1) exit_code = byte;
  } else {
    signalfd_siginfo info = {};
    if (read(signal_fd, &info, sizeof info) == sizeof info) {
      log_->Info("stopping", {{"signal", info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT"}});
    }
  }
  Drain(absl::Seconds(options_.drain_timeout_s), signal_fd);
  // Stopping CivetWeb takes it two seconds of polling; the process ends now anyway. It only holds a
  // weak pointer to the registry.
  static auto* const left_running = new std::vector<std::unique_ptr<prometheus::Exposer>>;
  if (exposer_ != nullptr) left_running->push_back(std::move(exposer_));
  log_->Info("stopped", {{"exit_code", exit_code}});
  return exit_code;
}

void ServerHost::RequestStop(int exit_code) {
  const auto byte = static_cast<unsigned char>(exit_code);
  // The pipe holds thousands of requests; only the first is ever read.
  if (write(stop_pipe_[1], &byte, 1) != 1) log_->Error("could not ask for a stop");
}

void ServerHost::Stop(absl::Duration limit) { Drain(limit, /*signal_fd=*/-1); }

void ServerHost::Drain(absl::Duration limit, int signal_fd) {
  if (server_ == nullptr && admin_server_ == nullptr) return;
  health_->Drain();
  if (auto hook = std::exchange(on_drain_, nullptr)) hook();
  const gpr_timespec deadline = After(limit);
  int done_pipe[2];
  ABSL_RAW_CHECK(pipe(done_pipe) == 0, "a pipe");
  // Shutdown blocks until the last call has ended, while this thread listens for a second signal.
  std::thread shutdown([&] {
    if (drain_too_) drain_too_(limit);
    if (server_ != nullptr) server_->Shutdown(deadline);
    if (admin_server_ != nullptr) admin_server_->Shutdown(deadline);
    const char byte = 0;
    ABSL_RAW_CHECK(write(done_pipe[1], &byte, 1) == 1, "a pipe");
  });
  pollfd waits[] = {{done_pipe[0], POLLIN, 0}, {signal_fd, POLLIN, 0}};
  while (poll(waits, signal_fd < 0 ? 1 : 2, -1) < 0 && errno == EINTR) {
  }
  if (waits[0].revents == 0) {
    log_->Warning("second signal: calls are cut");
    _exit(kExitFailure);
  }
  shutdown.join();
  close(done_pipe[0]);
  close(done_pipe[1]);
  server_ = nullptr;
  admin_server_ = nullptr;
  if (auto hook = std::exchange(on_stopped_, nullptr)) hook();
}

}  // namespace tessera::services

#ifndef TESSERA_SERVICES_COMMON_SERVER_HOST_H_
#define TESSERA_SERVICES_COMMON_SERVER_HOST_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "grpcpp/server.h"
#include "prometheus/registry.h"
#include "services/common/health.h"
#include "services/common/log.h"
#include "services/common/request_id.h"
#include "services/common/server_options.h"

namespace prometheus {
class Exposer;
}

namespace tessera::services {

// Largest message that a server or client takes. 262,144 token ids are 1.3 MB, their text some
// 1 MB; a conversation with tools a few. Published, and never unlimited.
inline constexpr int kMessageBytesMax = 32 << 20;
// Clients may ping this often; a middlebox drops idle connections after minutes.
inline constexpr absl::Duration kPingIntervalMin = absl::Seconds(10);
// We look for a dead client this often, and give it this long to answer.
inline constexpr absl::Duration kKeepaliveTime = absl::Seconds(30);
inline constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(10);
// Connections end after this so that clients find new servers; calls in them may go on this long.
inline constexpr absl::Duration kConnectionAgeMax = absl::Minutes(30);
inline constexpr absl::Duration kConnectionAgeGrace = absl::Hours(1);
inline constexpr int kConcurrentStreamsPerConnectionMax = 4096;
// How much of a stream may be under way to a reader that does not read (HTTP/2 window). gRPC would
// let it grow to megabytes by probing; tokens need no more than this.
inline constexpr int kStreamWindowBytes = 128 << 10;
// gRPC may use this much memory for messages in transit.
inline constexpr size_t kGrpcMemoryBytesMax = size_t{1} << 30;

// The life of a server process: listens, tells the truth about its health, logs, shows its metrics,
// and stops in good order. A main() is then
//
//   absl::StatusOr<std::unique_ptr<ServerHost>> host = ServerHost::Create("tokenizer", options);
//   ... build the service with (*host)->log(), registry(), request_ids() ...
//   (*host)->AddService(&service, "tessera.tokenizer.v1.TokenizerService");
//   absl::Status started = (*host)->Start();       // the port is open; the service not yet ready
//   (*host)->health().Set("tessera.tokenizer.v1.TokenizerService", true);
//   return (*host)->Run();
//
// Create before starting any thread: it blocks SIGTERM and SIGINT for the whole process (Run waits
// for them) and ignores SIGPIPE. A process that spawns children must unblock those signals in them.
//
// Ownership: borrows the services, which must live until Run or Stop has returned.
// Threading: AddService and Start from one thread; health(), log(), registry() from any.
class ServerHost final {
 public:
  // Errors: kInvalidArgument names the flag.
  static absl::StatusOr<std::unique_ptr<ServerHost>> Create(std::string service_name,
                                                            const ServerOptions& options);
  ~ServerHost();
  ServerHost(const ServerHost&) = delete;
  ServerHost& operator=(const ServerHost&) = delete;

  // Before Start. `full_name` becomes a health name, not serving at first.
  void AddService(grpc::Service* service, std::string full_name);
  // The same on the admin port.
  void AddAdminService(grpc::Service* service, std::string full_name);

  // Opens all ports. Errors: kFailedPrecondition "--listen 127.0.0.1:50052 is in use; ..." and the
  // like; nothing stays open then.
  absl::Status Start();

  // Called once when the drain begins, before new calls are refused: stop admitting.
  void OnDrain(std::function<void()> hook) { on_drain_ = std::move(hook); }
  // A door besides gRPC: waits up to `limit` for what came in there. Called once while the drain
  // goes on, on a thread of its own, before the gRPC calls are waited for.
  void DrainToo(std::function<void(absl::Duration limit)> drain) { drain_too_ = std::move(drain); }
  // Called once when the drain is over, after the last call has ended.
  void OnStopped(std::function<void()> hook) { on_stopped_ = std::move(hook); }

  // Waits for SIGTERM or SIGINT or RequestStop, then drains: health says not serving at once, new
  // calls are refused, running ones may end for drain_timeout_s and are cancelled after it. A
  // second signal ends the process at once with kExitFailure. Returns the exit code.
  int Run();
  // Makes Run return `exit_code` after draining. Any thread.
  void RequestStop(int exit_code);
  // The same as Run's end, for tests: drains up to `limit` and closes everything.
  void Stop(absl::Duration limit);

  Health& health() { return *health_; }
  const Logger& log() const { return *log_; }
  prometheus::Registry& registry() { return *registry_; }
  RequestIds& request_ids() { return request_ids_; }
  // HOST:PORT that clients can use, after Start.
  const std::string& address() const { return address_; }
  const std::string& admin_address() const { return admin_address_; }
  const std::string& metrics_address() const { return metrics_address_; }

 private:
  ServerHost(std::string service_name, const ServerOptions& options, std::unique_ptr<Logger> log);
  absl::StatusOr<std::unique_ptr<grpc::Server>> Listen(const std::string& flag,
                                                       const std::string& address,
                                                       const std::vector<grpc::Service*>& services,
                                                       std::string& bound_address);
  // A second signal on `signal_fd` (-1: none) ends the process at once.
  void Drain(absl::Duration limit, int signal_fd);

  const std::string service_name_;
  const ServerOptions options_;
  std::unique_ptr<Logger> log_;
  std::unique_ptr<Health> health_;
  std::shared_ptr<prometheus::Registry> registry_;
  RequestIds request_ids_;
  std::vector<grpc::Service*> services_;
  std::vector<grpc::Service*> admin_services_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::Server> admin_server_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  std::string address_;
  std::string admin_address_;
  std::string metrics_address_;
  std::function<void()> on_drain_;
  std::function<void(absl::Duration)> drain_too_;
  std::function<void()> on_stopped_;
  int stop_pipe_[2] = {-1, -1};  // RequestStop writes the exit code, Run reads it
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_SERVER_HOST_H_

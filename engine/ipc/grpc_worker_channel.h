#ifndef TESSERA_ENGINE_IPC_GRPC_WORKER_CHANNEL_H_
#define TESSERA_ENGINE_IPC_GRPC_WORKER_CHANNEL_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "engine/ipc/worker_channel.h"
#include "grpcpp/grpcpp.h"
#include "tessera/worker/v1/worker.grpc.pb.h"

namespace tessera::engine {

// A fresh worker process may take this long to open its socket.
inline constexpr absl::Duration kWorkerConnectMax = absl::Seconds(20);

// WorkerChannel over gRPC on a Unix socket. One thread of its own reads: it waits for the socket,
// follows the load, then reports results in turn. Send serialises and writes on the caller's
// thread, a few tens of microseconds; nothing is queued here, since at most kPlansInFlightMax are
// unanswered. A round trip of an empty step measures about 110 us on two busy cores (README.md).
// The destructor ends the streams and joins the thread: it must not run inside an event.
class GrpcWorkerChannel final : public WorkerChannel {
 public:
  GrpcWorkerChannel(std::string socket_path, WorkerEvents& events);
  ~GrpcWorkerChannel() override;
  GrpcWorkerChannel(const GrpcWorkerChannel&) = delete;
  GrpcWorkerChannel& operator=(const GrpcWorkerChannel&) = delete;

  void StartLoad(const WorkerLoad& load) override;
  void Send(const StepPlan& plan) override;
  void Close() override;

 private:
  void Read(const WorkerLoad& load);
  absl::Status Load(const WorkerLoad& load, std::vector<std::string>& warnings);
  absl::Status ReadResults();

  WorkerEvents& events_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<worker::v1::WorkerService::Stub> stub_;
  grpc::ClientContext load_context_;
  grpc::ClientContext execute_context_;
  // Set by the reading thread before OnLoaded(OK), which comes before any Send.
  std::unique_ptr<grpc::ClientReaderWriter<worker::v1::ExecuteRequest, worker::v1::ExecuteResponse>>
      stream_;
  worker::v1::ExecuteRequest request_;  // Send's, reused
  std::thread reader_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_IPC_GRPC_WORKER_CHANNEL_H_

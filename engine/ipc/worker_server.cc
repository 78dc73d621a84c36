#include "engine/ipc/worker_server.h"

#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/ipc/worker_messages.h"
#include "grpcpp/grpcpp.h"
#include "tessera/worker/v1/worker.grpc.pb.h"

namespace tessera::engine {
namespace {

grpc::Status GrpcStatusOf(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace

class WorkerServer::Service final : public worker::v1::WorkerService::Service {
 public:
  explicit Service(WorkerHandler& handler) : handler_(handler) {}

  grpc::Status Load(grpc::ServerContext*, const worker::v1::LoadRequest* request,
                    grpc::ServerWriter<worker::v1::LoadResponse>* writer) override {
    if (load_called_.exchange(true)) {
      return {grpc::StatusCode::FAILED_PRECONDITION, "worker protocol: Load was called before"};
    }
    std::vector<std::string> warnings;
    const absl::StatusOr<WorkerLoad> load = FromProto(*request);
    absl::Status status = load.status();
    if (status.ok()) {
      status = handler_.Load(
          *load,
          [writer](const WorkerProgress& progress) {
            worker::v1::LoadResponse response;
            response.set_phase(progress.phase);
            response.set_bytes_done(progress.bytes_done);
            response.set_bytes_total(progress.bytes_total);
            writer->Write(response);
          },
          warnings);
    }
    if (!status.ok()) {
      Done(status);
      return GrpcStatusOf(status);
    }
    worker::v1::LoadResponse response;
    response.set_phase("ready");
    response.set_complete(true);
    for (const std::string& warning : warnings) {
      if (response.unused_tensors_size() < kLoadWarningsMax) response.add_unused_tensors(warning);
    }
    loaded_ = true;
    writer->Write(response);
    return grpc::Status::OK;
  }

  grpc::Status Execute(grpc::ServerContext*,
                       grpc::ServerReaderWriter<worker::v1::ExecuteResponse,
                                                worker::v1::ExecuteRequest>* stream) override {
    if (!loaded_ || execute_called_.exchange(true)) {
      return {grpc::StatusCode::FAILED_PRECONDITION,
              "worker protocol: Execute is called once, after Load"};
    }
    const absl::Status status = Serve(*stream);
    Done(status);
    return GrpcStatusOf(status);
  }

  absl::Status AwaitDone() {
    absl::MutexLock lock(&mutex_);
    const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_.has_value(); };
    mutex_.Await(absl::Condition(&done));
    return *done_;
  }

  std::unique_ptr<grpc::Server> server;

 private:
  absl::Status Serve(
      grpc::ServerReaderWriter<worker::v1::ExecuteResponse, worker::v1::ExecuteRequest>& stream) {
    worker::v1::ExecuteRequest request;
    worker::v1::ExecuteResponse response;
    while (stream.Read(&request)) {
      absl::StatusOr<StepPlan> plan = FromProto(request.plan());
      if (!plan.ok()) return plan.status();
      absl::StatusOr<StepResult> result = handler_.Execute(*plan);
      if (!result.ok()) return result.status();
      response.Clear();
      ToProto(*result, *response.mutable_result());
      if (!stream.Write(response)) break;  // the engine has gone
    }
    return absl::OkStatus();
  }

  void Done(absl::Status status) {
    absl::MutexLock lock(&mutex_);
    if (!done_) done_ = std::move(status);
  }

  WorkerHandler& handler_;
  std::atomic<bool> load_called_ = false;
  std::atomic<bool> loaded_ = false;
  std::atomic<bool> execute_called_ = false;
  absl::Mutex mutex_;
  std::optional<absl::Status> done_ ABSL_GUARDED_BY(mutex_);
};

WorkerServer::WorkerServer(WorkerHandler& handler) : service_(new Service(handler)) {}

absl::StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Start(const std::string& socket_path,
                                                                  WorkerHandler& handler) {
  if (socket_path.empty() || socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("--socket: has ", socket_path.size(),
                                                   " bytes; a socket's path has 1 to ",
                                                   sizeof(sockaddr_un::sun_path) - 1));
  }
  std::unique_ptr<WorkerServer> self(new WorkerServer(handler));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("unix:" + socket_path, grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(kWorkerMessageBytesMax);
  builder.SetMaxSendMessageSize(kWorkerMessageBytesMax);
  // One engine, one stream at a time.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 2);
  builder.RegisterService(self->service_.get());
  self->service_->server = builder.BuildAndStart();
  if (self->service_->server == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("--socket: cannot listen on ", socket_path, "; is its folder writable?"));
  }
  return self;
}

WorkerServer::~WorkerServer() {
  if (service_->server) {
    service_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    service_->server->Wait();
  }
}

absl::Status WorkerServer::Wait() { return service_->AwaitDone(); }

}  // namespace tessera::engine

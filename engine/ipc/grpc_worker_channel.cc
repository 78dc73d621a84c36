#include "engine/ipc/grpc_worker_channel.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ipc/worker_messages.h"

namespace tessera::engine {
namespace {

absl::Status StatusOf(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kWorkerMessageBytesMax);
  arguments.SetMaxSendMessageSize(kWorkerMessageBytesMax);
  // Each generation of a worker has a connection of its own, never a cached one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

}  // namespace

GrpcWorkerChannel::GrpcWorkerChannel(std::string socket_path, WorkerEvents& events)
    : events_(events),
      channel_(grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(),
                                         Arguments())),
      stub_(worker::v1::WorkerService::NewStub(channel_)) {}

GrpcWorkerChannel::~GrpcWorkerChannel() {
  Close();
  if (reader_.joinable()) reader_.join();
}

void GrpcWorkerChannel::Close() {
  load_context_.TryCancel();
  execute_context_.TryCancel();
}

void GrpcWorkerChannel::StartLoad(const WorkerLoad& load) {
  reader_ = std::thread([this, load] { Read(load); });
}

void GrpcWorkerChannel::Read(const WorkerLoad& load) {
  std::vector<std::string> warnings;
  absl::Status loaded = Load(load, warnings);
  if (loaded.ok()) stream_ = stub_->Execute(&execute_context_);
  events_.OnLoaded(loaded, warnings);
  if (!loaded.ok()) return;
  events_.OnLost(ReadResults());
}

absl::Status GrpcWorkerChannel::Load(const WorkerLoad& load, std::vector<std::string>& warnings) {
  load_context_.set_wait_for_ready(true);
  worker::v1::LoadRequest request;
  ToProto(load, request);
  // Waiting happens here with a limit; the load itself may take as long as the disk does.
  const auto limit = std::chrono::system_clock::now() + absl::ToChronoSeconds(kWorkerConnectMax);
  if (!channel_->WaitForConnected(limit)) {
    return absl::UnavailableError(absl::StrCat("the worker did not open its socket within ",
                                               absl::FormatDuration(kWorkerConnectMax)));
  }
  const auto reader = stub_->Load(&load_context_, request);
  worker::v1::LoadResponse response;
  bool complete = false;
  while (reader->Read(&response)) {
    events_.OnLoadProgress({.phase = response.phase(),
                            .bytes_done = response.bytes_done(),
                            .bytes_total = response.bytes_total()});
    if (!response.complete()) continue;
    complete = true;
    for (const std::string& name : response.unused_tensors()) {
      if (warnings.size() < static_cast<size_t>(kLoadWarningsMax)) warnings.push_back(name);
    }
  }
  const absl::Status status = StatusOf(reader->Finish());
  if (!status.ok()) return status;
  if (!complete) return absl::InternalError("the worker ended its load without completing it");
  return absl::OkStatus();
}

absl::Status GrpcWorkerChannel::ReadResults() {
  worker::v1::ExecuteResponse response;
  while (stream_->Read(&response)) {
    absl::StatusOr<StepResult> result = FromProto(response.result());
    if (!result.ok()) {
      execute_context_.TryCancel();
      while (stream_->Read(&response)) {
      }
      (void)stream_->Finish();
      return result.status();
    }
    events_.OnResult(*std::move(result));
  }
  const absl::Status status = StatusOf(stream_->Finish());
  return status.ok() ? absl::UnavailableError("the worker ended its stream") : status;
}

void GrpcWorkerChannel::Send(const StepPlan& plan) {
  request_.Clear();
  ToProto(plan, *request_.mutable_plan());
  // A stream that is broken fails its read, too, and that one reports it.
  (void)stream_->Write(request_);
}

}  // namespace tessera::engine

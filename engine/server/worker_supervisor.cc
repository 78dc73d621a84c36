#include "engine/server/worker_supervisor.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ipc/grpc_worker_channel.h"

namespace tessera::engine {
namespace {

// A stream breaks a moment before the process can be reaped; its end says more than "socket
// closed".
constexpr absl::Duration kEndGrace = absl::Milliseconds(100);

double SecondsSince(const Clock& clock, uint64_t begin_us) {
  return static_cast<double>(clock.NowUs() - begin_us) * 1e-6;
}

}  // namespace

// What one generation of a worker tells.
class WorkerSupervisor::Events final : public WorkerEvents {
 public:
  Events(WorkerSupervisor& supervisor, uint64_t generation)
      : supervisor_(supervisor), generation_(generation) {}

  void OnLoadProgress(const WorkerProgress& progress) override {
    supervisor_.parts_.metrics.OnLoadBytes(progress.bytes_done, progress.bytes_total);
    if (progress.phase != phase_) {
      phase_ = progress.phase;
      supervisor_.parts_.log.Info("loading", {{"phase", phase_},
                                              {"bytes_done", progress.bytes_done},
                                              {"bytes_total", progress.bytes_total}});
    }
    absl::MutexLock lock(&supervisor_.mutex_);
    supervisor_.news_.progress_us = supervisor_.parts_.clock.NowUs();
  }
  void OnLoaded(const absl::Status& status, const std::vector<std::string>& warnings) override {
    {
      absl::MutexLock lock(&supervisor_.mutex_);
      supervisor_.news_.loaded = status;
      supervisor_.news_.warnings = warnings;
    }
    supervisor_.Wake();
  }
  void OnResult(StepResult result) override {
    supervisor_.executor_->PostResult(generation_, std::move(result));
  }
  void OnLost(const absl::Status& status) override {
    {
      absl::MutexLock lock(&supervisor_.mutex_);
      if (!supervisor_.news_.lost) supervisor_.news_.lost = status;
    }
    supervisor_.Wake();
  }

 private:
  WorkerSupervisor& supervisor_;
  const uint64_t generation_;
  std::string phase_;
};

WorkerSupervisor::WorkerSupervisor(SupervisorOptions options, const Parts& parts)
    : options_(std::move(options)), parts_(parts) {}

WorkerSupervisor::~WorkerSupervisor() {
  Stop();
  if (wake_fd_ >= 0) ::close(wake_fd_);
  if (!folder_.empty()) ::rmdir(folder_.c_str());
}

absl::Status WorkerSupervisor::Start(Executor& executor) {
  executor_ = &executor;
  // A socket's path has at most 107 bytes, so TMPDIR is not asked.
  char folder[] = "/tmp/tessera-engine-XXXXXX";
  if (::mkdtemp(folder) == nullptr) {
    return absl::InternalError(absl::StrCat(
        "cannot make a folder for the worker's socket under /tmp: ", std::strerror(errno)));
  }
  folder_ = folder;
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return absl::InternalError(absl::StrCat("eventfd: ", std::strerror(errno)));
  thread_ = std::thread([this] { Supervise(); });
  return absl::OkStatus();
}

void WorkerSupervisor::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Wake();
  if (thread_.joinable()) thread_.join();
}

void WorkerSupervisor::Wake() {
  const uint64_t one = 1;
  if (wake_fd_ >= 0) (void)!::write(wake_fd_, &one, sizeof(one));
}

void WorkerSupervisor::OnWorkerUnfit(uint64_t generation, const absl::Status& reason) {
  {
    absl::MutexLock lock(&mutex_);
    if (generation != generation_ || news_.lost) return;
    news_.lost = reason;
  }
  Wake();
}

void WorkerSupervisor::Supervise() {
  absl::Duration delay = absl::ZeroDuration();
  bool served_once = false;
  for (uint64_t generation = 1;; ++generation) {
    const uint64_t begin_us = parts_.clock.NowUs();
    bool served = false;
    const absl::Status end = RunOne(generation, served);
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    if (!served && !served_once) {
      parts_.on_fatal(end);
      return;
    }
    served_once = true;
    if (!served) {
      executor_->EndWaiting(
          absl::UnavailableError(absl::StrCat("the worker cannot be restarted: ", end.message())));
    }
    const bool well =
        served && SecondsSince(parts_.clock, begin_us) > absl::ToDoubleSeconds(kServedWell);
    if (well) delay = absl::ZeroDuration();
    parts_.log.Error("the worker was lost",
                     {{"reason", end.ToString()}, {"restart_in_s", absl::ToDoubleSeconds(delay)}});
    if (!Sleep(delay)) return;
    delay = std::clamp(delay * 2, kRestartDelayMin, kRestartDelayMax);
    parts_.metrics.OnWorkerRestart();
  }
}

absl::Status WorkerSupervisor::RunOne(uint64_t generation, bool& served) {
  const uint64_t begin_us = parts_.clock.NowUs();
  {
    absl::MutexLock lock(&mutex_);
    generation_ = generation;
    news_ = {.progress_us = begin_us};
  }
  const std::string socket = absl::StrCat(folder_, "/worker-", generation, ".sock");
  std::vector<std::string> arguments = options_.arguments;
  arguments.insert(arguments.end(), {"--socket", socket, "--parent", std::to_string(::getpid())});
  absl::StatusOr<WorkerProcess> process = WorkerProcess::Spawn(options_.program, arguments);
  if (!process.ok()) return process.status();
  Events events(*this, generation);
  const auto channel = std::make_shared<GrpcWorkerChannel>(socket, events);
  channel->StartLoad(options_.load);
  absl::Status end = AwaitLoaded(*process);
  if (end.ok()) {
    served = true;
    const double seconds = SecondsSince(parts_.clock, begin_us);
    LogLoaded(generation, seconds, process->pid());
    parts_.metrics.OnWorkerUp(seconds);
    executor_->AttachWorker(generation, channel);
    parts_.state.SetWorker(WorkerState::kReady);
    end = AwaitLost(*process);
    parts_.state.SetWorker(WorkerState::kRecovering);
    parts_.metrics.OnWorkerDown();
    executor_->PostLost(generation, end);
  }
  process->Kill();
  channel->Close();
  ::unlink(socket.c_str());
  return end;
}

bool WorkerSupervisor::Wait(const WorkerProcess& process, absl::Duration limit) {
  pollfd polled[2] = {{.fd = wake_fd_, .events = POLLIN},
                      {.fd = process.exit_fd(), .events = POLLIN}};
  ::poll(polled, 2, static_cast<int>(absl::ToInt64Milliseconds(limit)));
  uint64_t count = 0;
  (void)!::read(wake_fd_, &count, sizeof(count));
  absl::MutexLock lock(&mutex_);
  return !stopping_;
}

absl::Status WorkerSupervisor::AwaitLoaded(WorkerProcess& process) {
  while (Wait(process, kLoadSilenceMax)) {
    {
      absl::MutexLock lock(&mutex_);
      if (news_.loaded) return *news_.loaded;
    }
    if (const auto end = process.PollEnd()) {
      // Its reason may still be on its way through the stream.
      absl::MutexLock lock(&mutex_);
      const auto loaded = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return news_.loaded.has_value() || stopping_;
      };
      mutex_.AwaitWithTimeout(absl::Condition(&loaded), kEndGrace);
      if (news_.loaded && !news_.loaded->ok()) return *news_.loaded;
      return absl::UnavailableError(absl::StrCat("the worker ", *end, " while it loaded"));
    }
    absl::MutexLock lock(&mutex_);
    const double silence = SecondsSince(parts_.clock, news_.progress_us);
    if (silence >= absl::ToDoubleSeconds(kLoadSilenceMax)) {
      return absl::UnavailableError(
          absl::StrCat("the worker's load reported nothing for ", silence, " s"));
    }
  }
  return absl::UnavailableError("the server stops");
}

absl::Status WorkerSupervisor::AwaitLost(WorkerProcess& process) {
  while (Wait(process, absl::Hours(1))) {
    std::optional<absl::Status> lost;
    {
      absl::MutexLock lock(&mutex_);
      lost = news_.lost;
    }
    std::optional<std::string> end = process.PollEnd();
    if (!lost && !end) continue;
    if (!end && lost->code() == absl::StatusCode::kUnavailable) {
      pollfd polled = {.fd = process.exit_fd(), .events = POLLIN};
      ::poll(&polled, 1, static_cast<int>(absl::ToInt64Milliseconds(kEndGrace)));
      end = process.PollEnd();
    }
    // A reason that the worker gave itself says more than its exit code.
    if (lost && (!end || lost->code() != absl::StatusCode::kUnavailable)) return *lost;
    return absl::UnavailableError("it " + *end);
  }
  return absl::UnavailableError("the server stops");
}

bool WorkerSupervisor::Sleep(absl::Duration delay) {
  absl::MutexLock lock(&mutex_);
  return !mutex_.AwaitWithTimeout(absl::Condition(&stopping_), delay);
}

void WorkerSupervisor::LogLoaded(uint64_t generation, double seconds, pid_t pid) {
  std::vector<std::string> warnings;
  {
    absl::MutexLock lock(&mutex_);
    warnings = news_.warnings;
  }
  for (const std::string& warning : warnings) {
    parts_.log.Warning("checkpoint", {{"warning", warning}});
  }
  parts_.log.Info("worker ready", {{"generation", generation}, {"seconds", seconds}, {"pid", pid}});
}

}  // namespace tessera::engine

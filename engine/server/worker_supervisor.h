#ifndef TESSERA_ENGINE_SERVER_WORKER_SUPERVISOR_H_
#define TESSERA_ENGINE_SERVER_WORKER_SUPERVISOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/core/clock.h"
#include "engine/executor/executor.h"
#include "engine/ipc/worker_channel.h"
#include "engine/server/engine_metrics.h"
#include "engine/server/engine_state.h"
#include "engine/server/worker_process.h"
#include "services/common/log.h"

namespace tessera::engine {

// A worker that was lost is started again at once, and after that with growing pauses.
inline constexpr absl::Duration kRestartDelayMin = absl::Milliseconds(100);
inline constexpr absl::Duration kRestartDelayMax = absl::Seconds(15);
// A worker that served for this long starts the pauses over.
inline constexpr absl::Duration kServedWell = absl::Seconds(60);
// A load that reports nothing for this long hangs.
inline constexpr absl::Duration kLoadSilenceMax = absl::Minutes(10);

struct SupervisorOptions {
  std::string program;                 // the worker's binary
  std::vector<std::string> arguments;  // besides --socket and --parent
  WorkerLoad load;
};

// Keeps one worker process alive: spawns it, follows its load, attaches it to the executor, notices
// its end (the process's, the stream's, or the executor's verdict), and starts the next.
//
// The first worker must load: if its model is refused, that is final and `on_fatal` hears it. Later
// ones are tried for ever, with pauses; what waits in the queue is refused after the first failure.
//
// Ownership: borrows all parts.  Threading: its own thread does everything; Start and Stop from
// one.
class WorkerSupervisor final : public WorkerKeeper {
 public:
  struct Parts {
    const Clock& clock;
    EngineState& state;
    EngineMetrics& metrics;
    const services::Logger& log;
    std::function<void(const absl::Status&)> on_fatal;
  };
  WorkerSupervisor(SupervisorOptions options, const Parts& parts);
  ~WorkerSupervisor() override;

  // `executor` is given here since it borrows the supervisor itself.
  // Errors: kInternal: no folder for the socket can be made.
  absl::Status Start(Executor& executor);
  // Kills the worker; no other is started.
  void Stop();

  void OnWorkerUnfit(uint64_t generation, const absl::Status& reason) override;

 private:
  class Events;
  // What has happened to the worker at hand; filled by other threads.
  struct News {
    std::optional<absl::Status> loaded;
    std::vector<std::string> warnings;
    std::optional<absl::Status> lost;
    uint64_t progress_us = 0;
  };

  void Supervise();
  // Runs one worker from spawn to end. Returns how it ended; `served` says whether it ever did.
  absl::Status RunOne(uint64_t generation, bool& served);
  // Waits until news, the process's end or a stop; OK: it has loaded.
  absl::Status AwaitLoaded(WorkerProcess& process);
  absl::Status AwaitLost(WorkerProcess& process);
  // Blocks until something may have changed. False: stop.
  bool Wait(const WorkerProcess& process, absl::Duration limit);
  bool Sleep(absl::Duration delay);
  void Wake();
  void LogLoaded(uint64_t generation, double seconds, pid_t pid);

  const SupervisorOptions options_;
  const Parts parts_;
  Executor* executor_ = nullptr;
  std::string folder_;  // of the sockets; ours alone
  int wake_fd_ = -1;
  std::thread thread_;
  absl::Mutex mutex_;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  News news_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SERVER_WORKER_SUPERVISOR_H_

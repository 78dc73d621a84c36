#ifndef TESSERA_ENGINE_IPC_WORKER_SERVER_H_
#define TESSERA_ENGINE_IPC_WORKER_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/core/step.h"
#include "engine/ipc/worker_channel.h"

namespace tessera::engine {

// What a worker does. Threading: one call at a time, Load before any Execute, from threads of the
// server's.
class WorkerHandler {
 public:
  virtual ~WorkerHandler() = default;
  // `progress` may be called any number of times.
  virtual absl::Status Load(const WorkerLoad& load,
                            const std::function<void(const WorkerProgress&)>& progress,
                            std::vector<std::string>& warnings) = 0;
  // An error is final: the stream ends with it and Wait returns it.
  virtual absl::StatusOr<StepResult> Execute(const StepPlan& plan) = 0;
};

// Serves one engine over a Unix socket, then is done: exactly one Load and one Execute stream.
// Ownership: borrows the handler.
class WorkerServer final {
 public:
  // Errors: kInvalidArgument: the path is too long for a socket; kUnavailable: it cannot be opened.
  static absl::StatusOr<std::unique_ptr<WorkerServer>> Start(const std::string& socket_path,
                                                             WorkerHandler& handler);
  ~WorkerServer();

  // Blocks until the engine has gone (OK) or the handler failed (its status). A failed Load ends it
  // too.
  absl::Status Wait();

 private:
  class Service;
  explicit WorkerServer(WorkerHandler& handler);
  const std::unique_ptr<Service> service_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_IPC_WORKER_SERVER_H_

#ifndef TESSERA_ENGINE_EXECUTOR_EXECUTOR_H_
#define TESSERA_ENGINE_EXECUTOR_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/core/clock.h"
#include "engine/core/request.h"
#include "engine/core/step.h"
#include "engine/executor/step_loop.h"
#include "engine/executor/step_observer.h"
#include "engine/ipc/worker_channel.h"

namespace tessera::engine {

struct ExecutorOptions {
  StepLoopOptions loop;
  uint32_t queue_requests_max = 256;
  uint64_t queue_tokens_max = 1 << 20;  // prompt tokens of all waiting requests
  uint64_t step_us_max = 30'000'000;    // a step that takes longer hangs
};

// What the executor asks of whoever keeps the workers. Called on the executor's thread; must not
// block, nor call back.
class WorkerKeeper {
 public:
  virtual ~WorkerKeeper() = default;
  // The worker of this generation hangs or broke the protocol: end it. PostLost is still due, or
  // has been acted on already; it does no harm twice.
  virtual void OnWorkerUnfit(uint64_t generation, const absl::Status& reason) = 0;
};

// The engine's loop: one thread (the one in Run) owns a StepLoop; everything else posts to its
// bounded inbox. Between two looks at the inbox it plans and sends steps until enough are in
// flight.
//
// Workers come and go by generation, counted up by their keeper. What a past generation still says
// is ignored.
//
// Ownership: borrows clock, observer and keeper.
// Threading: every method may be called from any thread; Run from one.
class Executor final {
 public:
  Executor(const ExecutorOptions& options, const Clock& clock, StepObserver& observer,
           WorkerKeeper& keeper);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Takes a request into the queue; its sink hears everything else.
  // Errors: kResourceExhausted names the limit of the queue that is reached; kAlreadyExists: a
  // live request has this id; what Refuse was given. The sink is not touched then.
  absl::Status Submit(GenerationRequest request, std::shared_ptr<RequestSink> sink);
  // The caller of this request is gone. No effect on an unknown id.
  void Cancel(const std::string& request_id);
  // Ends these as finished with kAbort; returns those that were live.
  std::vector<std::string> Abort(const std::vector<std::string>& request_ids);

  // New requests get `status` from now on; OK: they are taken. Begins as "is loading".
  void Refuse(absl::Status status);
  // Ends all that waits, or all that lives, with `status`.
  void EndWaiting(absl::Status status);
  void EndAll(absl::Status status);
  // Whether no request lives, or none any more within `limit`.
  bool WaitIdle(absl::Duration limit);

  // A worker that has loaded; steps go there from now on.
  void AttachWorker(uint64_t generation, std::shared_ptr<WorkerChannel> channel);
  void PostResult(uint64_t generation, StepResult result);
  void PostLost(uint64_t generation, absl::Status reason);

  // As of the last step. Cheap.
  LoadFacts Load() const;

  // Runs the loop until Stop. Requests that live then end with kUnavailable or kAborted.
  void Run();
  void Stop();

 private:
  struct Added {
    GenerationRequest request;
    std::shared_ptr<RequestSink> sink;
  };
  struct Cancelled {
    std::string request_id;
    bool abort;
  };
  struct Ended {
    absl::Status status;
    bool waiting_only;
  };
  struct Attached {
    uint64_t generation;
    std::shared_ptr<WorkerChannel> channel;
  };
  struct Answered {
    uint64_t generation;
    StepResult result;
  };
  struct Lost {
    uint64_t generation;
    absl::Status reason;
  };
  using Post = std::variant<Added, Cancelled, Ended, Attached, Answered, Lost>;

  // Frees a request's id before its sink hears of the end, and passes the rest on.
  class Observer;

  void Enqueue(Post post) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for posts, the next deadline or the watchdog. False: stop.
  bool TakePosts(std::vector<Post>& posts) ABSL_LOCKS_EXCLUDED(mutex_);
  void Handle(Post& post);
  void LoseWorker(const absl::Status& reason);
  void SendPlans();
  void CheckWatchdog();
  uint64_t WakeUs() const;

  const ExecutorOptions options_;
  const Clock& clock_;
  WorkerKeeper& keeper_;
  const std::unique_ptr<Observer> observer_;

  mutable absl::Mutex mutex_;
  absl::CondVar posted_;
  std::vector<Post> inbox_ ABSL_GUARDED_BY(mutex_);
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  // Value: whether its end has been asked for; so the inbox holds at most two posts a request.
  absl::flat_hash_map<std::string, bool> live_ ABSL_GUARDED_BY(mutex_);
  uint32_t inbox_requests_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t inbox_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  LoadFacts load_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // The thread in Run alone.
  StepLoop loop_;
  uint64_t generation_ = 0;
  std::shared_ptr<WorkerChannel> channel_;
  uint64_t wake_us_ = kNoDeadlineUs;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_EXECUTOR_EXECUTOR_H_

#ifndef TESSERA_ENGINE_EXECUTOR_STEP_LOOP_H_
#define TESSERA_ENGINE_EXECUTOR_STEP_LOOP_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "engine/core/clock.h"
#include "engine/core/request.h"
#include "engine/core/scheduler_view.h"
#include "engine/core/step.h"
#include "engine/executor/step_observer.h"
#include "engine/kv/block_table.h"
#include "engine/kv/id_pool.h"

namespace tessera::engine {

struct StepLoopOptions {
  uint32_t slots = 1;
  uint32_t blocks = 1;
  uint32_t vocab = 1;
  uint32_t plans_in_flight_max = 1;  // 2: plan a step while the one before it runs
  StepLimits limits;
};

// The heart of the engine without its thread: owns every request, sequence, block and slot, and
// turns what happens (a request, a result, a cancellation, a lost worker) into step plans and
// events of requests. It is deterministic: the same calls at the same times give the same plans,
// which is how the simulator tests it.
//
// A plan is applied to the accounts when it is made, not when its result comes: workers run plans
// in order, so memory that a sequence gives back is free for the plan after the last one that used
// it. A result for a sequence that has ended meanwhile is dropped.
//
// Every request ends exactly once:
//   status OK          every choice ended by a stop, its length or Abort
//   kCancelled         its caller went away
//   kDeadlineExceeded  queued, prefilling or decoding
//   kDataLoss          its logits were not finite
//   kUnavailable       the worker was lost before any token was sent; kAborted: after some were
//
// Ownership: borrows clock and observer.  Threading: one thread.
class StepLoop {
 public:
  StepLoop(const StepLoopOptions& options, const Clock& clock, StepObserver& observer);
  ~StepLoop();
  StepLoop(const StepLoop&) = delete;
  StepLoop& operator=(const StepLoop&) = delete;

  // Takes a request into the queue. It was checked before: its id is new, prompt and max_tokens fit
  // the pool, choices and max_tokens are at least 1.
  void Add(GenerationRequest request, std::shared_ptr<RequestSink> sink);

  // Ends a request as its caller's cancellation. False: there is none of this id.
  bool Cancel(const std::string& request_id);
  // Ends it as finished, its open choices with kAbort.
  bool Abort(const std::string& request_id);
  // Ends every request with `status`: those that only wait, or all.
  void EndWaiting(const absl::Status& status);
  void EndAll(const absl::Status& status);

  // From now on steps may be planned.
  void OnWorkerReady();
  // Ends what was being worked on; what only waits goes on waiting.
  void OnWorkerLost(const absl::Status& reason);

  // The next step to send, or nothing: no worker, enough in flight, nothing to do. Ends what has
  // passed its deadline first.
  std::optional<StepPlan> NextPlan();

  // Error: the result answers no plan that was sent (the worker's bug); nothing has changed then,
  // and the worker must be given up.
  absl::Status OnResult(const StepResult& result);

  // When NextPlan must be called at the latest, for a deadline; kNoDeadlineUs: never.
  uint64_t NextDeadlineUs() const;
  // When the oldest step in flight was sent; nullopt: none is.
  std::optional<uint64_t> OldestStepSentUs() const;

  LoadFacts Load() const;
  bool Idle() const { return requests_.empty(); }

  // Proves that blocks and slots are conserved. For tests.  Cost: O(pool).
  absl::Status CheckConserved() const;

 private:
  struct Request;
  struct Sequence;
  struct StepInFlight {
    uint64_t step = 0;
    uint64_t sent_us = 0;
    StepFacts facts;
    std::vector<SequenceId> sampled;
  };
  using QueueKey = std::pair<int32_t, uint64_t>;  // priority, arrival
  using Queue = std::map<QueueKey, Sequence*>;

  SchedulerView MakeView(uint64_t now_us) const;
  StepPlan Apply(const StepDecision& decision, uint64_t now_us);
  void ApplyWork(const WorkDecision& decision, uint64_t now_us, StepPlan& plan,
                 StepInFlight& flight);
  void Preempt(Sequence& sequence);
  void Admit(Sequence& sequence, StepPlan& plan);
  // Gives slot and blocks back and tells the workers so with the next plan.
  void Release(Sequence& sequence);
  // Releases, moves to kFinished, forgets. `sequence` is gone afterwards.
  void Finish(Sequence& sequence);
  void OnToken(Sequence& sequence, const SequenceResult& result, uint64_t now_us);
  void EndRequest(Request& request, absl::Status status);
  void MarkStarted(Request& request, uint64_t now_us);
  Sequence& Of(SequenceId id);

  const StepLoopOptions options_;
  const Clock& clock_;
  StepObserver& observer_;
  BlockPool blocks_;
  SlotPool slots_;
  absl::flat_hash_map<std::string, std::unique_ptr<Request>> requests_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Sequence>> sequences_;
  Queue running_;
  Queue waiting_;
  std::multimap<uint64_t, Request*> deadlines_;
  std::vector<SequenceId> ended_;  // the workers still hold these
  std::deque<StepInFlight> in_flight_;
  bool worker_ready_ = false;
  uint64_t step_next_ = 1;
  uint64_t sequence_next_ = 1;
  uint64_t arrival_next_ = 1;
  uint32_t requests_waiting_ = 0;
  uint64_t tokens_waiting_ = 0;
  WaitReason wait_reason_ = WaitReason::kNone;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_EXECUTOR_STEP_LOOP_H_

#ifndef TESSERA_ENGINE_EXECUTOR_STEP_OBSERVER_H_
#define TESSERA_ENGINE_EXECUTOR_STEP_OBSERVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/core/request.h"
#include "engine/core/scheduler_view.h"

namespace tessera::engine {

// A step that has come back.
struct StepFacts {
  uint32_t prefill_tokens = 0;
  uint32_t decode_tokens = 0;
  uint32_t sequences = 0;
  uint32_t tokens_generated = 0;  // that reached a request
  uint64_t device_us = 0;         // as the worker measured
  uint64_t round_trip_us = 0;     // from dispatch to result
};

// A token that reached its request. `since_us` counts from the submission for the first token of a
// request, else from the token before it of the same choice.
struct TokenFacts {
  bool first = false;
  uint64_t since_us = 0;
  bool not_finite = false;
};

// A request that has ended.
struct RequestFacts {
  std::string request_id;
  absl::Status status;
  std::vector<ChoiceEnd> choices;
  uint32_t prompt_tokens = 0;
  uint32_t completion_tokens = 0;
  uint32_t choices_asked = 0;
  uint32_t max_tokens = 0;
  bool started = false;    // some step worked on it
  bool had_token = false;  // some token was sent
  uint64_t queue_us = 0;
  uint64_t prefill_us = 0;
  uint64_t decode_us = 0;
  uint64_t total_us = 0;
};

// How busy an engine is.
struct LoadFacts {
  uint32_t requests_running = 0;  // worked on, preempted ones too
  uint32_t requests_waiting = 0;
  uint64_t tokens_waiting = 0;  // of the prompts of the waiting ones
  uint32_t blocks_used = 0;
  uint32_t blocks_total = 0;
  uint32_t slots_used = 0;
  uint32_t slots_total = 0;
  WaitReason wait_reason = WaitReason::kNone;
};

// Receives what happens as plain data: metrics and logs are made elsewhere.
// Threading: the executor's thread; must not block, nor call back.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void OnStep(const StepFacts& facts) = 0;
  virtual void OnToken(const TokenFacts& facts) = 0;
  virtual void OnPreempted(uint32_t tokens_lost) = 0;
  // Comes before the sink's OnEnd.
  virtual void OnRequestEnd(const RequestFacts& facts) = 0;
  // After each turn of the loop.
  virtual void OnLoad(const LoadFacts& facts) = 0;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_EXECUTOR_STEP_OBSERVER_H_

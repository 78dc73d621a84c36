#include "engine/executor/step_loop.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/core/check.h"
#include "engine/core/sequence_state.h"
#include "engine/scheduler/plan_step.h"

namespace tessera::engine {

struct StepLoop::Request {
  GenerationRequest spec;
  std::shared_ptr<RequestSink> sink;
  std::vector<Sequence*> open;  // choices that have not ended
  std::vector<ChoiceEnd> ends;  // in order of ending
  uint32_t completion_tokens = 0;
  std::multimap<uint64_t, Request*>::iterator deadline;
  uint64_t added_us = 0;
  // Each is set once; 0: not yet. The clock of a running engine is past 0.
  uint64_t started_us = 0;
  uint64_t first_token_us = 0;
  uint64_t last_token_us = 0;

  uint32_t prompt_tokens() const { return static_cast<uint32_t>(spec.prompt.size()); }
};

struct StepLoop::Sequence {
  SequenceId id;
  Request* request = nullptr;
  uint32_t choice_index = 0;
  SequenceState state = SequenceState::kWaiting;
  QueueKey key;
  std::vector<TokenId> generated;  // that came back
  uint32_t pending = 0;            // sampled, on their way
  uint32_t computed = 0;
  std::optional<SlotId> slot;
  BlockTable blocks;
  uint64_t last_token_us = 0;

  uint32_t known_tokens() const {
    return request->prompt_tokens() + static_cast<uint32_t>(generated.size());
  }
  TokenId token_at(uint32_t position) const {
    const uint32_t prompt_tokens = request->prompt_tokens();
    return position < prompt_tokens ? request->spec.prompt[position]
                                    : generated[position - prompt_tokens];
  }
};

StepLoop::StepLoop(const StepLoopOptions& options, const Clock& clock, StepObserver& observer)
    : options_(options),
      clock_(clock),
      observer_(observer),
      blocks_(options.blocks),
      slots_(options.slots) {
  TESSERA_CHECK(options.limits.step_tokens_max >= options.slots, "every sequence must fit a step");
  TESSERA_CHECK(options.limits.prefill_tokens_beside_decode_max >= 1, "a prefill must move");
}

StepLoop::~StepLoop() = default;

StepLoop::Sequence& StepLoop::Of(SequenceId id) {
  const auto it = sequences_.find(id.value);
  TESSERA_CHECK(it != sequences_.end(), absl::StrCat("sequence ", id.value));
  return *it->second;
}

void StepLoop::Add(GenerationRequest spec, std::shared_ptr<RequestSink> sink) {
  TESSERA_CHECK(!requests_.contains(spec.request_id), spec.request_id);
  const uint64_t tokens = spec.prompt.size() + uint64_t{spec.max_tokens};
  TESSERA_CHECK(!spec.prompt.empty() && spec.choices > 0 && spec.max_tokens > 0 &&
                    tokens <= uint64_t{options_.blocks} * options_.limits.block_tokens,
                absl::StrCat("tokens ", tokens, " choices ", spec.choices));
  auto owned = std::make_unique<Request>();
  Request& request = *owned;
  request.spec = std::move(spec);
  request.sink = std::move(sink);
  request.added_us = clock_.NowUs();
  request.deadline = deadlines_.emplace(request.spec.deadline_us, &request);
  ++requests_waiting_;
  tokens_waiting_ += request.prompt_tokens();
  for (uint32_t choice = 0; choice < request.spec.choices; ++choice) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = SequenceId(sequence_next_++);
    sequence->request = &request;
    sequence->choice_index = choice;
    sequence->key = {request.spec.priority, arrival_next_++};
    request.open.push_back(sequence.get());
    waiting_.emplace(sequence->key, sequence.get());
    const uint64_t id = sequence->id.value;
    sequences_.emplace(id, std::move(sequence));
  }
  requests_.emplace(request.spec.request_id, std::move(owned));
}

bool StepLoop::Cancel(const std::string& request_id) {
  const auto it = requests_.find(request_id);
  if (it == requests_.end()) return false;
  EndRequest(*it->second, absl::CancelledError("the caller cancelled the request"));
  return true;
}

bool StepLoop::Abort(const std::string& request_id) {
  const auto it = requests_.find(request_id);
  if (it == requests_.end()) return false;
  Request& request = *it->second;
  while (!request.open.empty()) {
    Sequence& sequence = *request.open.front();
    const ChoiceEnd end = {
        .choice_index = sequence.choice_index,
        .reason = FinishReason::kAbort,
        .completion_tokens = static_cast<uint32_t>(sequence.generated.size()),
    };
    request.ends.push_back(end);
    request.sink->OnDelta({.choice_index = sequence.choice_index, .end = end});
    Finish(sequence);
  }
  EndRequest(request, absl::OkStatus());
  return true;
}

void StepLoop::EndWaiting(const absl::Status& status) {
  std::vector<Request*> ending;
  for (auto& [id, request] : requests_) {
    if (request->started_us == 0) ending.push_back(request.get());
  }
  for (Request* request : ending) EndRequest(*request, status);
}

void StepLoop::EndAll(const absl::Status& status) {
  while (!requests_.empty()) EndRequest(*requests_.begin()->second, status);
}

void StepLoop::OnWorkerReady() { worker_ready_ = true; }

void StepLoop::OnWorkerLost(const absl::Status& reason) {
  worker_ready_ = false;
  in_flight_.clear();
  std::vector<Request*> ending;
  for (auto& [id, request] : requests_) {
    if (request->started_us != 0) ending.push_back(request.get());
  }
  for (Request* request : ending) {
    const bool sent = request->first_token_us != 0;
    EndRequest(*request,
               absl::Status(sent ? absl::StatusCode::kAborted : absl::StatusCode::kUnavailable,
                            absl::StrCat("the worker was lost (", reason.message(), ") after ",
                                         request->completion_tokens, " tokens; send it again")));
  }
  ended_.clear();  // the next worker knows none of them
}

SchedulerView StepLoop::MakeView(uint64_t now_us) const {
  SchedulerView view;
  view.now_us = now_us;
  view.blocks_free = blocks_.free_count();
  // Without a worker nothing can be admitted; deadlines go on passing.
  view.slots_free = worker_ready_ ? slots_.free_count() : 0;
  const auto add = [](const Queue& queue, std::vector<SequenceView>& views) {
    views.reserve(queue.size());
    for (const auto& [key, sequence] : queue) {
      const GenerationRequest& spec = sequence->request->spec;
      views.push_back({.sequence = sequence->id,
                       .state = sequence->state,
                       .priority = key.first,
                       .arrival = key.second,
                       .tokens = sequence->known_tokens() + sequence->pending,
                       .computed = sequence->computed,
                       .tokens_max = sequence->request->prompt_tokens() + spec.max_tokens,
                       .blocks_held = sequence->blocks.count(),
                       .tokens_pending = sequence->pending,
                       .deadline_us = spec.deadline_us});
    }
  };
  add(running_, view.running);
  add(waiting_, view.waiting);
  return view;
}

std::optional<StepPlan> StepLoop::NextPlan() {
  if (in_flight_.size() >= options_.plans_in_flight_max || requests_.empty()) return std::nullopt;
  const uint64_t now_us = clock_.NowUs();
  const SchedulerView view = MakeView(now_us);
  const StepDecision decision = PlanStep(view, options_.limits);
  const absl::Status sound = CheckDecision(view, options_.limits, decision);
  TESSERA_CHECK(sound.ok(), sound.ToString());
  wait_reason_ = decision.wait_reason;
  StepPlan plan = Apply(decision, now_us);
  if (plan.work.empty()) {
    // Nobody gave up memory for nothing: what ended goes out with the next plan that has work.
    ended_.insert(ended_.end(), plan.ended.begin(), plan.ended.end());
    return std::nullopt;
  }
  return plan;
}

StepPlan StepLoop::Apply(const StepDecision& decision, uint64_t now_us) {
  for (SequenceId id : decision.expired) {
    const auto it = sequences_.find(id.value);
    if (it == sequences_.end()) continue;  // went with another choice of its request
    Request& request = *it->second->request;
    EndRequest(request, absl::DeadlineExceededError(
                            absl::StrCat("the deadline passed ",
                                         request.started_us == 0 ? "in the queue" : "while it ran",
                                         " after ", request.completion_tokens, " tokens")));
  }
  for (SequenceId id : decision.preempted) Preempt(Of(id));
  StepPlan plan;
  plan.ended = std::exchange(ended_, {});
  for (SequenceId id : decision.admitted) Admit(Of(id), plan);
  StepInFlight flight;
  for (const WorkDecision& work : decision.work) ApplyWork(work, now_us, plan, flight);
  if (plan.work.empty()) return plan;
  plan.step = step_next_++;
  flight.step = plan.step;
  flight.sent_us = now_us;
  flight.facts.sequences = static_cast<uint32_t>(plan.work.size());
  in_flight_.push_back(std::move(flight));
  return plan;
}

void StepLoop::Preempt(Sequence& sequence) {
  observer_.OnPreempted(sequence.computed);
  Release(sequence);
  MoveTo(sequence.state, SequenceState::kPreempted);
  running_.erase(sequence.key);
  waiting_.emplace(sequence.key, &sequence);
}

void StepLoop::Admit(Sequence& sequence, StepPlan& plan) {
  sequence.slot = slots_.Take();
  TESSERA_CHECK(sequence.slot.has_value(), absl::StrCat("sequence ", sequence.id.value));
  MoveTo(sequence.state, SequenceState::kPrefilling);
  waiting_.erase(sequence.key);
  running_.emplace(sequence.key, &sequence);
  const GenerationRequest& spec = sequence.request->spec;
  SequenceStart start = {.sequence = sequence.id,
                         .slot = *sequence.slot,
                         .prompt_tokens = sequence.request->prompt_tokens(),
                         .sampling = spec.sampling};
  start.sampling.seed = SeedOfChoice(spec.sampling.seed, sequence.choice_index);
  start.sampling.end_ids = spec.eos_ids;
  start.sampling.end_ids.insert(start.sampling.end_ids.end(), spec.stop_ids.begin(),
                                spec.stop_ids.end());
  plan.started.push_back(std::move(start));
}

void StepLoop::ApplyWork(const WorkDecision& decision, uint64_t now_us, StepPlan& plan,
                         StepInFlight& flight) {
  Sequence& sequence = Of(decision.sequence);
  MarkStarted(*sequence.request, now_us);
  SequenceWork work = {.sequence = sequence.id, .position = decision.position};
  const uint32_t blocks_before = sequence.blocks.count();
  TESSERA_CHECK(sequence.blocks.Grow(blocks_, decision.new_blocks),
                absl::StrCat("sequence ", sequence.id.value, " takes ", decision.new_blocks));
  const auto& blocks = sequence.blocks.blocks();
  work.new_blocks.assign(blocks.begin() + blocks_before, blocks.end());
  work.sample = decision.sample;
  // A decode names no token: the workers have sampled it, we may not have seen it yet.
  if (sequence.state == SequenceState::kPrefilling) {
    work.tokens.reserve(decision.tokens);
    for (uint32_t i = 0; i < decision.tokens; ++i) {
      work.tokens.push_back(sequence.token_at(decision.position + i));
    }
    flight.facts.prefill_tokens += decision.tokens;
  } else {
    flight.facts.decode_tokens += decision.tokens;
  }
  sequence.computed += decision.tokens;
  if (decision.sample) {
    ++sequence.pending;
    flight.sampled.push_back(sequence.id);
    if (sequence.state == SequenceState::kPrefilling) {
      MoveTo(sequence.state, SequenceState::kDecoding);
    }
  }
  plan.work.push_back(std::move(work));
}

void StepLoop::MarkStarted(Request& request, uint64_t now_us) {
  if (request.started_us != 0) return;
  request.started_us = std::max<uint64_t>(now_us, 1);
  --requests_waiting_;
  tokens_waiting_ -= request.prompt_tokens();
}

absl::Status StepLoop::OnResult(const StepResult& result) {
  if (in_flight_.empty() || in_flight_.front().step != result.step) {
    return absl::InternalError(absl::StrCat("worker: answered step ", result.step, " out of turn"));
  }
  const StepInFlight& expected = in_flight_.front();
  if (result.results.size() != expected.sampled.size()) {
    return absl::InternalError(absl::StrCat("worker: step ", result.step, " has ",
                                            result.results.size(), " results; ",
                                            expected.sampled.size(), " were asked for"));
  }
  for (size_t i = 0; i < result.results.size(); ++i) {
    const SequenceResult& one = result.results[i];
    if (one.sequence != expected.sampled[i] ||
        (!one.not_finite && one.token.value >= options_.vocab)) {
      return absl::InternalError(absl::StrCat("worker: step ", result.step, " result ", i,
                                              " names sequence ", one.sequence.value, ", token ",
                                              one.token.value));
    }
  }
  const uint64_t now_us = clock_.NowUs();
  StepInFlight flight = std::move(in_flight_.front());
  in_flight_.pop_front();
  flight.facts.device_us = result.device_us;
  flight.facts.round_trip_us = now_us - flight.sent_us;
  for (const SequenceResult& one : result.results) {
    const auto it = sequences_.find(one.sequence.value);
    if (it == sequences_.end()) continue;  // ended while this step ran
    flight.facts.tokens_generated += one.not_finite ? 0 : 1;
    OnToken(*it->second, one, now_us);
  }
  observer_.OnStep(flight.facts);
  return absl::OkStatus();
}

namespace {

bool Holds(const std::vector<TokenId>& ids, TokenId token) {
  return std::find(ids.begin(), ids.end(), token) != ids.end();
}

// Why a choice ends with `token` as its token number `count` (from 1), if it does.
std::optional<ChoiceEnd> EndAt(const GenerationRequest& spec, TokenId token, uint32_t count) {
  ChoiceEnd end = {.completion_tokens = count};
  // The sampler forbids end tokens until min_tokens; should it fail to, we still go on.
  if (count > spec.sampling.min_tokens) {
    if (Holds(spec.eos_ids, token)) return end;
    if (Holds(spec.stop_ids, token)) {
      end.stop_token = token;
      return end;
    }
  }
  if (count >= spec.max_tokens) {
    end.reason = FinishReason::kLength;
    return end;
  }
  return std::nullopt;
}

}  // namespace

void StepLoop::OnToken(Sequence& sequence, const SequenceResult& result, uint64_t now_us) {
  Request& request = *sequence.request;
  --sequence.pending;
  if (result.not_finite) {
    observer_.OnToken({.not_finite = true});
    EndRequest(request, absl::DataLossError(absl::StrCat(
                            "the model's logits were not finite at choice ", sequence.choice_index,
                            ", token ", sequence.generated.size())));
    return;
  }
  const bool first = request.first_token_us == 0;
  const uint64_t before_us =
      sequence.last_token_us != 0 ? sequence.last_token_us : request.added_us;
  // A later choice's first token is neither a first token nor an interval between tokens.
  if (first || sequence.last_token_us != 0) {
    observer_.OnToken({.first = first, .since_us = now_us - before_us});
  }
  if (first) request.first_token_us = std::max<uint64_t>(now_us, 1);
  request.last_token_us = now_us;
  sequence.last_token_us = std::max<uint64_t>(now_us, 1);
  sequence.generated.push_back(result.token);
  ++request.completion_tokens;

  ChoiceDelta delta = {.choice_index = sequence.choice_index};
  // The wire cannot say "no log probability"; the request can.
  const bool logprobs = request.spec.sampling.logprobs.has_value();
  delta.tokens.push_back({.token = result.token,
                          .logprob = logprobs ? result.logprob : std::nullopt,
                          .top_logprobs = result.top_logprobs});
  delta.end = EndAt(request.spec, result.token, static_cast<uint32_t>(sequence.generated.size()));
  if (!delta.end) {
    request.sink->OnDelta(std::move(delta));
    return;
  }
  delta.end->choice_index = sequence.choice_index;
  request.ends.push_back(*delta.end);
  request.sink->OnDelta(std::move(delta));
  Finish(sequence);
  if (request.open.empty()) EndRequest(request, absl::OkStatus());
}

void StepLoop::Release(Sequence& sequence) {
  if (!sequence.slot) return;
  slots_.Give(*sequence.slot);
  sequence.slot.reset();
  sequence.blocks.Release(blocks_);
  sequence.computed = 0;
  ended_.push_back(sequence.id);
}

void StepLoop::Finish(Sequence& sequence) {
  Release(sequence);
  MoveTo(sequence.state, SequenceState::kFinished);
  running_.erase(sequence.key);
  waiting_.erase(sequence.key);
  auto& open = sequence.request->open;
  open.erase(std::find(open.begin(), open.end(), &sequence));
  sequences_.erase(sequence.id.value);
}

void StepLoop::EndRequest(Request& request, absl::Status status) {
  while (!request.open.empty()) Finish(*request.open.back());
  if (request.started_us == 0) {
    --requests_waiting_;
    tokens_waiting_ -= request.prompt_tokens();
  }
  deadlines_.erase(request.deadline);
  std::sort(request.ends.begin(), request.ends.end(),
            [](const ChoiceEnd& a, const ChoiceEnd& b) { return a.choice_index < b.choice_index; });
  const uint64_t now_us = clock_.NowUs();
  const uint64_t started_us = request.started_us != 0 ? request.started_us : now_us;
  const uint64_t first_us = request.first_token_us != 0 ? request.first_token_us : now_us;
  const uint64_t last_us = request.first_token_us != 0 ? request.last_token_us : now_us;
  RequestFacts facts = {.request_id = request.spec.request_id,
                        .status = status,
                        .prompt_tokens = request.prompt_tokens(),
                        .completion_tokens = request.completion_tokens,
                        .choices_asked = request.spec.choices,
                        .max_tokens = request.spec.max_tokens,
                        .started = request.started_us != 0,
                        .had_token = request.first_token_us != 0,
                        .queue_us = started_us - request.added_us,
                        .prefill_us = first_us - started_us,
                        .decode_us = last_us - first_us,
                        .total_us = now_us - request.added_us};
  if (status.ok()) facts.choices = request.ends;
  RequestEnd end = {.status = std::move(status),
                    .choices = facts.choices,
                    .prompt_tokens = facts.prompt_tokens,
                    .completion_tokens = facts.completion_tokens,
                    .queue_us = facts.queue_us,
                    .prefill_us = facts.prefill_us,
                    .decode_us = facts.decode_us};
  const std::shared_ptr<RequestSink> sink = std::move(request.sink);
  requests_.erase(facts.request_id);  // `request` is gone
  observer_.OnRequestEnd(facts);
  sink->OnEnd(std::move(end));
}

uint64_t StepLoop::NextDeadlineUs() const {
  return deadlines_.empty() ? kNoDeadlineUs : deadlines_.begin()->first;
}

std::optional<uint64_t> StepLoop::OldestStepSentUs() const {
  if (in_flight_.empty()) return std::nullopt;
  return in_flight_.front().sent_us;
}

LoadFacts StepLoop::Load() const {
  return {.requests_running = static_cast<uint32_t>(requests_.size()) - requests_waiting_,
          .requests_waiting = requests_waiting_,
          .tokens_waiting = tokens_waiting_,
          .blocks_used = blocks_.taken_count(),
          .blocks_total = blocks_.total(),
          .slots_used = slots_.taken_count(),
          .slots_total = slots_.total(),
          .wait_reason = wait_reason_};
}

absl::Status StepLoop::CheckConserved() const {
  std::vector<const BlockTable*> tables;
  std::vector<SlotId> slots;
  for (const auto& [id, sequence] : sequences_) {
    if (IsRunning(sequence->state) != sequence->slot.has_value()) {
      return absl::InternalError(absl::StrCat("sequence ", id, " is ",
                                              SequenceStateName(sequence->state), " but ",
                                              sequence->slot ? "holds a slot" : "holds none"));
    }
    tables.push_back(&sequence->blocks);
    if (sequence->slot) slots.push_back(*sequence->slot);
  }
  if (absl::Status s = CheckBlocksConserved(blocks_, tables); !s.ok()) return s;
  return CheckSlotsConserved(slots_, slots);
}

}  // namespace tessera::engine

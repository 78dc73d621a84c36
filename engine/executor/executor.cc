#include "engine/executor/executor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tessera::engine {

class Executor::Observer final : public StepObserver {
 public:
  Observer(Executor& executor, StepObserver& next) : executor_(executor), next_(next) {}
  void OnStep(const StepFacts& facts) override { next_.OnStep(facts); }
  void OnToken(const TokenFacts& facts) override { next_.OnToken(facts); }
  void OnPreempted(uint32_t tokens_lost) override { next_.OnPreempted(tokens_lost); }
  void OnRequestEnd(const RequestFacts& facts) override {
    {
      absl::MutexLock lock(&executor_.mutex_);
      executor_.live_.erase(facts.request_id);
      // Whoever hears of the end and asks for the load must not find the request in it.
      executor_.load_ = executor_.loop_.Load();
    }
    next_.OnRequestEnd(facts);
  }
  void OnLoad(const LoadFacts& facts) override { next_.OnLoad(facts); }

 private:
  Executor& executor_;
  StepObserver& next_;
};

Executor::Executor(const ExecutorOptions& options, const Clock& clock, StepObserver& observer,
                   WorkerKeeper& keeper)
    : options_(options),
      clock_(clock),
      keeper_(keeper),
      observer_(std::make_unique<Observer>(*this, observer)),
      refusal_(absl::UnavailableError("the model is loading; try again")),
      loop_(options.loop, clock, *observer_) {
  absl::MutexLock lock(&mutex_);
  load_ = loop_.Load();
}

Executor::~Executor() = default;

void Executor::Enqueue(Post post) {
  inbox_.push_back(std::move(post));
  posted_.Signal();
}

absl::Status Executor::Submit(GenerationRequest request, std::shared_ptr<RequestSink> sink) {
  absl::MutexLock lock(&mutex_);
  if (!refusal_.ok()) return refusal_;
  if (stopping_) return absl::UnavailableError("the server is stopping");
  const uint64_t requests = uint64_t{load_.requests_waiting} + inbox_requests_;
  if (requests >= options_.queue_requests_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the queue is full: ", requests, " requests wait and --queue-requests-max is ",
                     options_.queue_requests_max, "; try again later"));
  }
  const uint64_t tokens = load_.tokens_waiting + inbox_tokens_;
  // One long prompt on its own is always taken.
  if (requests > 0 && tokens + request.prompt.size() > options_.queue_tokens_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the queue is full: prompts of ", tokens, " tokens wait, this one has ",
                     request.prompt.size(), ", and --queue-tokens-max is ",
                     options_.queue_tokens_max, "; try again later"));
  }
  if (!live_.emplace(request.request_id, false).second) {
    return absl::AlreadyExistsError("names a request that is running; choose another");
  }
  ++inbox_requests_;
  inbox_tokens_ += request.prompt.size();
  Enqueue(Added{std::move(request), std::move(sink)});
  return absl::OkStatus();
}

void Executor::Cancel(const std::string& request_id) {
  absl::MutexLock lock(&mutex_);
  const auto it = live_.find(request_id);
  if (it == live_.end() || std::exchange(it->second, true)) return;
  Enqueue(Cancelled{request_id, /*abort=*/false});
}

std::vector<std::string> Executor::Abort(const std::vector<std::string>& request_ids) {
  std::vector<std::string> found;
  absl::MutexLock lock(&mutex_);
  for (const std::string& id : request_ids) {
    const auto it = live_.find(id);
    if (it == live_.end() || std::exchange(it->second, true)) continue;
    Enqueue(Cancelled{id, /*abort=*/true});
    found.push_back(id);
  }
  return found;
}

void Executor::Refuse(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  refusal_ = std::move(status);
}

void Executor::EndWaiting(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  Enqueue(Ended{std::move(status), /*waiting_only=*/true});
}

void Executor::EndAll(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  Enqueue(Ended{std::move(status), /*waiting_only=*/false});
}

bool Executor::WaitIdle(absl::Duration limit) {
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return live_.empty(); };
  return mutex_.AwaitWithTimeout(absl::Condition(&idle), limit);
}

void Executor::AttachWorker(uint64_t generation, std::shared_ptr<WorkerChannel> channel) {
  absl::MutexLock lock(&mutex_);
  Enqueue(Attached{generation, std::move(channel)});
}

void Executor::PostResult(uint64_t generation, StepResult result) {
  absl::MutexLock lock(&mutex_);
  Enqueue(Answered{generation, std::move(result)});
}

void Executor::PostLost(uint64_t generation, absl::Status reason) {
  absl::MutexLock lock(&mutex_);
  Enqueue(Lost{generation, std::move(reason)});
}

LoadFacts Executor::Load() const {
  absl::MutexLock lock(&mutex_);
  LoadFacts load = load_;
  load.requests_waiting += inbox_requests_;
  load.tokens_waiting += inbox_tokens_;
  return load;
}

void Executor::Stop() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
  posted_.Signal();
}

bool Executor::TakePosts(std::vector<Post>& posts) {
  posts.clear();
  absl::MutexLock lock(&mutex_);
  while (inbox_.empty() && !stopping_) {
    if (wake_us_ == kNoDeadlineUs) {
      posted_.Wait(&mutex_);
      continue;
    }
    const uint64_t now_us = clock_.NowUs();
    if (now_us >= wake_us_) break;
    // Rounded up: waking a moment early would only turn the loop once more.
    posted_.WaitWithTimeout(&mutex_, absl::Microseconds(wake_us_ - now_us + 1));
  }
  posts.swap(inbox_);
  // What was counted in the inbox is counted in the loop from here on, without a gap.
  load_.requests_waiting += std::exchange(inbox_requests_, 0);
  load_.tokens_waiting += std::exchange(inbox_tokens_, 0);
  return !stopping_;
}

void Executor::Run() {
  std::vector<Post> posts;
  bool running = true;
  while (running) {
    running = TakePosts(posts);
    for (Post& post : posts) Handle(post);
    SendPlans();
    CheckWatchdog();
    wake_us_ = WakeUs();
    const LoadFacts load = loop_.Load();
    observer_->OnLoad(load);
    absl::MutexLock lock(&mutex_);
    load_ = load;
  }
  loop_.OnWorkerLost(absl::UnavailableError("the server stops"));
  loop_.EndAll(absl::UnavailableError("the server stops"));
  channel_.reset();
}

void Executor::Handle(Post& post) {
  if (auto* added = std::get_if<Added>(&post)) {
    loop_.Add(std::move(added->request), std::move(added->sink));
  } else if (auto* cancelled = std::get_if<Cancelled>(&post)) {
    if (cancelled->abort) {
      loop_.Abort(cancelled->request_id);
    } else {
      loop_.Cancel(cancelled->request_id);
    }
  } else if (auto* ended = std::get_if<Ended>(&post)) {
    if (ended->waiting_only) {
      loop_.EndWaiting(ended->status);
    } else {
      loop_.EndAll(ended->status);
    }
  } else if (auto* attached = std::get_if<Attached>(&post)) {
    if (attached->generation <= generation_) return;  // lost before it was here
    LoseWorker(absl::UnavailableError("replaced"));
    generation_ = attached->generation;
    channel_ = std::move(attached->channel);
    loop_.OnWorkerReady();
  } else if (auto* answered = std::get_if<Answered>(&post)) {
    if (answered->generation != generation_ || channel_ == nullptr) return;
    const absl::Status taken = loop_.OnResult(answered->result);
    if (taken.ok()) return;
    LoseWorker(taken);
    keeper_.OnWorkerUnfit(generation_, taken);
  } else if (auto* lost = std::get_if<Lost>(&post)) {
    if (lost->generation < generation_) return;
    generation_ = lost->generation;
    LoseWorker(lost->reason);
  }
}

void Executor::LoseWorker(const absl::Status& reason) {
  if (channel_ == nullptr) return;
  channel_.reset();
  loop_.OnWorkerLost(reason);
}

void Executor::SendPlans() {
  while (std::optional<StepPlan> plan = loop_.NextPlan()) channel_->Send(*plan);
}

void Executor::CheckWatchdog() {
  const std::optional<uint64_t> sent_us = loop_.OldestStepSentUs();
  if (!sent_us || channel_ == nullptr) return;
  const uint64_t age_us = clock_.NowUs() - *sent_us;
  if (age_us < options_.step_us_max) return;
  const absl::Status reason = absl::UnavailableError(
      absl::StrCat("no answer to a step for ", age_us / 1000, " ms; the limit is ",
                   options_.step_us_max / 1000, " ms"));
  LoseWorker(reason);
  keeper_.OnWorkerUnfit(generation_, reason);
}

uint64_t Executor::WakeUs() const {
  const std::optional<uint64_t> sent_us = loop_.OldestStepSentUs();
  // With a step in flight its result wakes us, and what expired is seen with the next plan.
  if (sent_us) return *sent_us + options_.step_us_max;
  return loop_.NextDeadlineUs();
}

}  // namespace tessera::engine

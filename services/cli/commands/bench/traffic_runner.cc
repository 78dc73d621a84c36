#include "services/cli/commands/bench/traffic_runner.h"

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tessera::cli {
namespace {

// The records of one run and who may send next. Outlives the last event: Finish waits for it.
class Run final {
 public:
  Run(TrafficTarget& target, const services::Clock& clock, size_t index_begin, size_t requests)
      : target_(target),
        clock_(clock),
        index_begin_(index_begin),
        begin_(clock.Monotonic()),
        records_(requests) {}

  absl::Duration Now() const { return clock_.Monotonic() - begin_; }

  size_t open() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return open_;
  }
  void AwaitOpenBelow(size_t limit) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto below = [this, limit]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return open_ < limit; };
    mutex_.Await(absl::Condition(&below));
  }
  void SleepUntil(absl::Duration moment) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto never = [] { return false; };
    mutex_.AwaitWithTimeout(absl::Condition(&never), moment - Now());
  }

  void Send(size_t i, absl::Duration due) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      records_[i].sent = due;
      ++open_;
    }
    target_.Start(index_begin_ + i,
                  {.on_tokens = [this, i](uint32_t tokens) { OnTokens(i, tokens); },
                   .on_done = [this, i](TrafficEnd end) { OnDone(i, std::move(end)); }});
  }
  void Refuse(size_t i, absl::Duration due) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    records_[i] = {.sent = due,
                   .ended = due,
                   .error = "not sent",
                   .message = "too many requests were open; lower --rate"};
  }

  std::vector<RequestRecord> Finish() ABSL_LOCKS_EXCLUDED(mutex_) {
    AwaitOpenBelow(1);
    absl::MutexLock lock(&mutex_);
    return std::move(records_);
  }

 private:
  void OnTokens(size_t i, uint32_t tokens) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Duration now = Now();
    absl::MutexLock lock(&mutex_);
    records_[i].arrivals.push_back({now, tokens});
    records_[i].output_tokens += tokens;
  }

  void OnDone(size_t i, TrafficEnd end) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Duration now = Now();
    absl::MutexLock lock(&mutex_);
    RequestRecord& record = records_[i];
    record.ended = now;
    record.error = std::move(end.error);
    record.message = std::move(end.message);
    record.prompt_tokens = end.prompt_tokens;
    if (end.output_tokens.has_value()) record.output_tokens = *end.output_tokens;
    --open_;
  }

  TrafficTarget& target_;
  const services::Clock& clock_;
  const size_t index_begin_;
  const absl::Duration begin_;
  mutable absl::Mutex mutex_;
  std::vector<RequestRecord> records_ ABSL_GUARDED_BY(mutex_);
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::vector<RequestRecord> RunClosedLoop(TrafficTarget& target, const services::Clock& clock,
                                         size_t index_begin, size_t requests, size_t concurrency) {
  Run run(target, clock, index_begin, requests);
  for (size_t i = 0; i < requests; ++i) {
    run.AwaitOpenBelow(concurrency);
    run.Send(i, run.Now());
  }
  return run.Finish();
}

std::vector<RequestRecord> RunOpenLoop(TrafficTarget& target, const services::Clock& clock,
                                       size_t index_begin,
                                       absl::Span<const absl::Duration> moments) {
  Run run(target, clock, index_begin, moments.size());
  for (size_t i = 0; i < moments.size(); ++i) {
    if (run.Now() < moments[i]) run.SleepUntil(moments[i]);
    if (run.open() < kOpenRequestsMax) {
      run.Send(i, moments[i]);
    } else {
      run.Refuse(i, moments[i]);
    }
  }
  return run.Finish();
}

}  // namespace tessera::cli

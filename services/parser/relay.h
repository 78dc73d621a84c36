#ifndef TESSERA_SERVICES_PARSER_RELAY_H_
#define TESSERA_SERVICES_PARSER_RELAY_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "services/common/stream/client_call.h"

namespace tessera::parser {

// The handle of the call below, for events of the call above that may come before the call below
// has returned its handle: what was asked meanwhile is done when the handle arrives.
// Threading: any thread.
class CallBelow {
 public:
  void Set(std::shared_ptr<services::ClientCall> call) ABSL_LOCKS_EXCLUDED(mutex_) {
    bool cancel = false;
    bool resume = false;
    {
      absl::MutexLock lock(&mutex_);
      call_ = call;
      cancel = cancelled_;
      resume = resumed_;
    }
    if (cancel) call->Cancel();
    if (resume) call->Resume();
  }
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<services::ClientCall> call;
    {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
      call = call_;
    }
    if (call != nullptr) call->Cancel();
  }
  void Resume() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<services::ClientCall> call;
    {
      absl::MutexLock lock(&mutex_);
      resumed_ = call_ == nullptr;
      call = call_;
    }
    if (call != nullptr) call->Resume();
  }

 private:
  absl::Mutex mutex_;
  std::shared_ptr<services::ClientCall> call_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool resumed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_RELAY_H_

#include "services/gateway/model_watch.h"

#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "services/clients/channel.h"
#include "services/common/call_context.h"

namespace tessera::gateway {

// Outlives the watch while an answer is under way.
struct ModelWatch::State {
  std::atomic<bool> serving = false;
  absl::Mutex mutex;
  std::optional<ServedModel> model ABSL_GUARDED_BY(mutex);
};

ModelWatch::ModelWatch(services::ParserClient& parser, std::function<void(bool)> changed)
    : state_(std::make_shared<State>()) {
  watch_ = parser.Watch([&parser, state = state_, changed = std::move(changed)](bool serving) {
    state->serving = serving;
    changed(serving);
    if (!serving) return;
    services::CallContext context;
    context.LimitTo(services::kUnaryDurationMax);
    parser.GetModelInfo(context, [state](absl::StatusOr<parser::v1::GetModelInfoResponse> info) {
      if (!info.ok()) return;  // the watch will say that it is away
      const engine::v1::GetModelInfoResponse& engine = info->tokenizer().engine();
      absl::MutexLock lock(&state->mutex);
      state->model = {.name = engine.model(), .context_tokens_max = engine.context_tokens_max()};
    });
  });
}

ModelWatch::~ModelWatch() = default;

bool ModelWatch::serving() const { return state_->serving; }

std::optional<ServedModel> ModelWatch::model() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->model;
}

}  // namespace tessera::gateway

#include "services/tokenizer/engine_watcher.h"

#include <atomic>
#include <utility>

namespace tessera::services {

// Outlives the watcher while an answer is under way.
struct EngineWatcher::State {
  std::atomic<bool> serving = false;
  std::atomic<uint32_t> context_tokens_max = 0;
};

EngineWatcher::EngineWatcher(EngineClient& engine, std::function<void(bool)> changed)
    : state_(std::make_shared<State>()) {
  watch_ = engine.Watch([&engine, state = state_, changed = std::move(changed)](bool serving) {
    state->serving = serving;
    changed(serving);
    if (!serving) return;
    engine.GetModelInfo({}, [state](absl::StatusOr<engine::v1::GetModelInfoResponse> info) {
      // Without an answer the engine alone refuses prompts that are too long.
      if (info.ok()) state->context_tokens_max = info->context_tokens_max();
    });
  });
}

EngineWatcher::~EngineWatcher() = default;

bool EngineWatcher::serving() const { return state_->serving; }
uint32_t EngineWatcher::context_tokens_max() const { return state_->context_tokens_max; }

}  // namespace tessera::services

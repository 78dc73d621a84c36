#ifndef TESSERA_SERVICES_TOKENIZER_ENGINE_WATCHER_H_
#define TESSERA_SERVICES_TOKENIZER_ENGINE_WATCHER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "services/clients/engine_client.h"

namespace tessera::services {

// Follows the engine: whether it serves, and what it has loaded, asked anew each time it comes
// back. Threading: any thread. `changed` runs on gRPC's threads, never after the destructor.
class EngineWatcher final {
 public:
  // Borrows the client.
  EngineWatcher(EngineClient& engine, std::function<void(bool serving)> changed);
  ~EngineWatcher();

  bool serving() const;
  // 0 while not known.
  uint32_t context_tokens_max() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
  std::unique_ptr<HealthWatch> watch_;
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_TOKENIZER_ENGINE_WATCHER_H_

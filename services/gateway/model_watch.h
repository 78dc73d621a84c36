#ifndef TESSERA_SERVICES_GATEWAY_MODEL_WATCH_H_
#define TESSERA_SERVICES_GATEWAY_MODEL_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "services/clients/parser_client.h"

namespace tessera::gateway {

// What GET /v1/models says of the model.
struct ServedModel {
  std::string name;
  uint32_t context_tokens_max = 0;
};

// Follows the chain below: whether it serves, and which model, asked anew each time it comes back.
// Threading: any thread. `changed` runs on gRPC's threads, never after the destructor.
class ModelWatch final {
 public:
  // Borrows the client.
  ModelWatch(services::ParserClient& parser, std::function<void(bool serving)> changed);
  ~ModelWatch();

  // Whether a request would be served now.
  bool serving() const;
  // The model, as last heard: it stays known while the chain is away. Empty before it first came.
  std::optional<ServedModel> model() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
  std::unique_ptr<services::HealthWatch> watch_;
};

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_MODEL_WATCH_H_

#ifndef TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_TARGET_H_
#define TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tessera::cli {

// How one request ended.
struct TrafficEnd {
  std::string error;    // a short kind, "HTTP 429"; empty: it succeeded
  std::string message;  // what was said about it
  uint32_t prompt_tokens = 0;
  std::optional<uint32_t> output_tokens;  // as the server counted; absent: as they came
};

struct TrafficEvents {
  // New tokens of the answer; at least one.
  std::function<void(uint32_t tokens)> on_tokens;
  // Exactly once, last.
  std::function<void(TrafficEnd end)> on_done;
};

// What a benchmark sends requests to.
class TrafficTarget {
 public:
  virtual ~TrafficTarget() = default;
  // Sends the request of this index; the same index is the same request. Never blocks. Events of
  // one request come one at a time, from any thread, before or after Start has returned.
  // Threading: one thread. The target must outlive its last event.
  virtual void Start(size_t index, TrafficEvents events) = 0;
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_BENCH_TRAFFIC_TARGET_H_

#ifndef TESSERA_SERVICES_CLI_COMMANDS_BENCH_OPENAI_STREAM_H_
#define TESSERA_SERVICES_CLI_COMMANDS_BENCH_OPENAI_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"
#include "services/cli/commands/bench/traffic_target.h"

namespace tessera::cli {

// A longer line of an event stream is a failure.
inline constexpr size_t kEventLineBytesMax = size_t{1} << 20;

// Reads the body of a streamed answer of an OpenAI server (chat or completions), cut anywhere, and
// counts its tokens. A server that sends a running usage (continuous_usage_stats) is believed;
// else each event with output counts as one token.
// Threading: one thread. Errors: kept for End; after one, input is ignored.
class OpenAiStream final {
 public:
  // Reads more of the body. Returns how many new tokens came with it.
  uint32_t Append(std::string_view bytes);
  // The end of the body: what the request came to. An answer without [DONE] failed.
  TrafficEnd End();

 private:
  uint32_t TakeLine(std::string_view line);
  uint32_t TakeEvent(const nlohmann::json& event);
  void Fail(std::string kind, std::string message);

  std::string line_;  // begun and not ended
  uint32_t tokens_ = 0;
  bool running_usage_ = false;
  bool done_ = false;
  TrafficEnd end_;
};

// The kind and message of an answer with another HTTP status than 200. `body` may be anything.
TrafficEnd HttpFailure(unsigned status, std::string_view body);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_BENCH_OPENAI_STREAM_H_

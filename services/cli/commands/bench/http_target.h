#ifndef TESSERA_SERVICES_CLI_COMMANDS_BENCH_HTTP_TARGET_H_
#define TESSERA_SERVICES_CLI_COMMANDS_BENCH_HTTP_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/cli/commands/bench/traffic_target.h"

namespace tessera::cli {

struct HttpTraffic {
  std::string url = "http://127.0.0.1:8000";  // without the path of the endpoint
  bool chat = true;                           // /v1/chat/completions; else /v1/completions
  std::string model;                          // empty: not named
  std::string prompt;                         // empty: random words, different for each index
  uint32_t prompt_words = 64;
  uint32_t max_tokens = 128;
  bool ignore_eos = true;
  float temperature = 0;
  uint64_t seed = 0;  // of words and of sampling
  absl::Duration timeout = absl::Minutes(5);
};

// The JSON body of the request of this index. Pure.
std::string RequestBody(const HttpTraffic& traffic, size_t index);

// Sends streamed requests to an OpenAI server over HTTP/1.1. Connections are kept and used again;
// there are as many as requests were open at once. Has one thread of its own, which calls the
// events. Finds the host and connects once, blocking.
// Errors: kInvalidArgument for a URL that is not http://HOST[:PORT][/PREFIX], kUnavailable if
// nothing answers there.
absl::StatusOr<std::unique_ptr<TrafficTarget>> MakeHttpTarget(const HttpTraffic& traffic);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_BENCH_HTTP_TARGET_H_

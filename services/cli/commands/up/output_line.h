#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_OUTPUT_LINE_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_OUTPUT_LINE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::cli {

enum class LineLevel : uint8_t { kDebug, kInfo, kWarning, kError, kPlain };

// What a child wrote on one line, for a person to read.
struct OutputLine {
  LineLevel level = LineLevel::kPlain;
  // Who says it: the log line's own `service` ("worker" in the engine's output), else the child.
  std::string source;
  // "the worker was lost: it was killed by signal 9 (restart_in_s 0)". No control characters.
  std::string text;
  // gRPC's own messages, which call everyday life of a network a warning.
  bool from_grpc = false;
  // It began with "tessera-NAME: ", as a process says why it cannot start; `text` does not.
  bool own_words = false;
};

// Reads a JSON log line (services/common/log.h), or any other text as kPlain.
OutputLine ReadOutputLine(std::string_view child, std::string_view line);

// "warning: " and so on; empty for info and plain text.
std::string_view LevelPrefix(LineLevel level);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_OUTPUT_LINE_H_

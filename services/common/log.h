#ifndef TESSERA_SERVICES_COMMON_LOG_H_
#define TESSERA_SERVICES_COMMON_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "absl/status/statusor.h"
#include "services/common/clock.h"

namespace spdlog {
class logger;
}

namespace tessera::services {

// A longer text value is cut, so that no request can flood the log.
inline constexpr size_t kLogValueBytesMax = 2048;

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat : uint8_t { kJson, kText };

// "debug", "info", "warning", "error", "off" and "json", "text". Errors: kInvalidArgument.
absl::StatusOr<LogLevel> ParseLogLevel(std::string_view text);
absl::StatusOr<LogFormat> ParseLogFormat(std::string_view text);

// One key of a log line and its value. Text is borrowed for the duration of the call.
class LogField {
 public:
  LogField(std::string_view key, std::string_view text) : key(key), value(text) {}
  LogField(std::string_view key, const char* text) : key(key), value(std::string_view(text)) {}
  LogField(std::string_view key, const std::string& text)
      : key(key), value(std::string_view(text)) {}
  LogField(std::string_view key, bool flag) : key(key), value(flag) {}
  template <class Number>
  requires(std::is_arithmetic_v<Number>) LogField(std::string_view key, Number number) : key(key) {
    if constexpr (std::is_floating_point_v<Number>) {
      value = static_cast<double>(number);
    } else {
      value = static_cast<int64_t>(number);
    }
  }

  std::string_view key;
  std::variant<std::string_view, int64_t, double, bool> value;
};

// Structured log of one process. A line has `ts` (UTC, milliseconds), `level`, `service`, `msg`,
// then the fields in the order given ("request_id" by that name). Everything is escaped: a value
// can neither end the line nor forge a field, and broken UTF-8 becomes U+FFFD.
//
// What may be logged: ids, counts, sizes, durations, codes, names of fields. Never prompts, model
// output, tool arguments or authorization values.
//
// Threading: all methods from any thread. Cost: nothing when the level is off; else one write.
class Logger final {
 public:
  struct Options {
    std::string service;
    LogLevel level = LogLevel::kInfo;
    LogFormat format = LogFormat::kJson;
    const Clock* clock = &RealClock();
    // Where finished lines (without newline) go; standard error when empty. For tests.
    std::function<void(std::string_view)> sink;
  };

  explicit Logger(Options options);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Debug(std::string_view msg, std::initializer_list<LogField> fields = {}) const;
  void Info(std::string_view msg, std::initializer_list<LogField> fields = {}) const;
  void Warning(std::string_view msg, std::initializer_list<LogField> fields = {}) const;
  void Error(std::string_view msg, std::initializer_list<LogField> fields = {}) const;
  bool Enabled(LogLevel level) const { return level >= options_.level; }

 private:
  void Write(LogLevel level, std::string_view msg, std::initializer_list<LogField> fields) const;

  Options options_;
  std::shared_ptr<spdlog::logger> output_;
};

// Sends gRPC's own messages through `logger` (null: back to gRPC's default). `logger` must outlive
// the last gRPC call. Process-wide.
void RouteGrpcLogs(const Logger* logger);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_LOG_H_

#include "services/common/log.h"

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "grpc/support/log.h"
#include "spdlog/logger.h"
#include "spdlog/sinks/stdout_sinks.h"

namespace tessera::services {
namespace {

absl::string_view Abseil(std::string_view text) { return {text.data(), text.size()}; }

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      break;
  }
  return "off";
}

// Length of the well-formed UTF-8 sequence at `i`, or 0.
size_t SequenceLength(std::string_view text, size_t i) {
  const auto at = [&](size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u;
  };
  const auto tail = [&](size_t k) { return (at(k) & 0xc0) == 0x80; };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead < 0xf0) {
    if ((lead == 0xe0 && at(1) < 0xa0) || (lead == 0xed && at(1) >= 0xa0)) return 0;
    return tail(1) && tail(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead < 0xf5) {
    if ((lead == 0xf0 && at(1) < 0x90) || (lead == 0xf4 && at(1) >= 0x90)) return 0;
    return tail(1) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

// Appends `text` as a JSON string. Control characters, quotes and broken bytes cannot leave it.
void AppendQuoted(std::string_view text, std::string& out) {
  const bool cut = text.size() > kLogValueBytesMax;
  text = text.substr(0, kLogValueBytesMax);
  out.push_back('"');
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceLength(text, i);
    const char c = text[i];
    if (length == 0) {
      out += "\xef\xbf\xbd";
      ++i;
      continue;
    }
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      out.append(text, i, length);
    }
    i += length;
  }
  if (cut) out += "...";
  out.push_back('"');
}

void AppendValue(const LogField& field, std::string& out) {
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    AppendQuoted(*text, out);
  } else if (const auto* whole = std::get_if<int64_t>(&field.value)) {
    absl::StrAppend(&out, *whole);
  } else if (const auto* real = std::get_if<double>(&field.value)) {
    // Infinity and NaN are no JSON numbers.
    if (*real - *real == 0) {
      absl::StrAppend(&out, *real);
    } else {
      out += "null";
    }
  } else {
    out += std::get<bool>(field.value) ? "true" : "false";
  }
}

std::string Timestamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

std::atomic<const Logger*> g_grpc_logger = nullptr;

void LogGrpcMessage(gpr_log_func_args* args) {
  const Logger* const logger = g_grpc_logger.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  // gRPC calls "ERROR" what is everyday life of a network, such as a refused connection.
  if (args->severity == GPR_LOG_SEVERITY_ERROR) {
    logger->Warning(args->message, {{"source", "grpc"}});
  } else {
    logger->Debug(args->message, {{"source", "grpc"}});
  }
}

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(std::string_view text) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError, LogLevel::kOff}) {
    if (text == LevelName(level)) return level;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown log level \"", Abseil(text),
                                                 "\"; give debug, info, warning, error or off"));
}

absl::StatusOr<LogFormat> ParseLogFormat(std::string_view text) {
  if (text == "json") return LogFormat::kJson;
  if (text == "text") return LogFormat::kText;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown log format \"", Abseil(text), "\"; give json or text"));
}

Logger::Logger(Options options) : options_(std::move(options)) {
  if (options_.sink) return;
  output_ = std::make_shared<spdlog::logger>(options_.service,
                                             std::make_shared<spdlog::sinks::stderr_sink_mt>());
  // Lines are made here, since spdlog's pattern cannot escape; it writes them as they are.
  output_->set_pattern("%v");
  output_->set_level(spdlog::level::trace);
}

Logger::~Logger() = default;

void Logger::Debug(std::string_view msg, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kDebug, msg, fields);
}
void Logger::Info(std::string_view msg, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kInfo, msg, fields);
}
void Logger::Warning(std::string_view msg, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kWarning, msg, fields);
}
void Logger::Error(std::string_view msg, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kError, msg, fields);
}

void Logger::Write(LogLevel level, std::string_view msg,
                   std::initializer_list<LogField> fields) const {
  if (!Enabled(level)) return;
  std::string line;
  line.reserve(256);
  const std::string ts = Timestamp(options_.clock->Wall());
  if (options_.format == LogFormat::kJson) {
    absl::StrAppend(&line, R"({"ts":")", ts, R"(","level":")", Abseil(LevelName(level)),
                    R"(","service":)");
    AppendQuoted(options_.service, line);
    line += ",\"msg\":";
    AppendQuoted(msg, line);
    for (const LogField& field : fields) {
      line.push_back(',');
      AppendQuoted(field.key, line);
      line.push_back(':');
      AppendValue(field, line);
    }
    line.push_back('}');
  } else {
    std::string quoted;
    AppendQuoted(msg, quoted);
    absl::StrAppend(&line, ts, " ", Abseil(LevelName(level)), " ", options_.service, " ",
                    absl::string_view(quoted).substr(1, quoted.size() - 2));
    for (const LogField& field : fields) {
      absl::StrAppend(&line, " ", Abseil(field.key), "=");
      AppendValue(field, line);
    }
  }
  if (options_.sink) {
    options_.sink(line);
  } else {
    // As an argument, not as a format: the line holds braces.
    output_->log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
  }
}

void RouteGrpcLogs(const Logger* logger) {
  g_grpc_logger.store(logger, std::memory_order_release);
  gpr_set_log_function(logger == nullptr ? nullptr : &LogGrpcMessage);
}

}  // namespace tessera::services

#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_UP_OPTIONS_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_UP_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::cli {

// With this --port every other port has its documented number, with another all are free ones.
inline constexpr uint16_t kGatewayPort = 8000;
inline constexpr uint16_t kEnginePort = 50051;
inline constexpr uint16_t kGatewayHealthPort = 50054;
inline constexpr uint16_t kTokenizerPort = 50052;
inline constexpr uint16_t kParserPort = 50053;
inline constexpr uint16_t kEngineAdminPort = 50061;
// Of the engine; the tokenizer's and the parser's follow.
inline constexpr uint16_t kMetricsPort = 9101;

// The flags of `tessera up`. What is not set here is left to each process's own default.
struct UpOptions {
  std::string model_dir;  // empty: the demo model
  std::string model_name;
  std::string device;
  std::optional<uint32_t> workers;
  std::optional<uint32_t> threads;
  std::optional<uint32_t> sequences_max;
  std::optional<uint32_t> model_len_max;
  std::string kv_memory;
  std::string default_chat_template_kwargs;

  std::string host = "127.0.0.1";
  uint16_t port = kGatewayPort;
  std::optional<uint16_t> engine_port;
  std::optional<uint16_t> tokenizer_port;
  std::optional<uint16_t> parser_port;
  std::optional<uint16_t> metrics_port;
  bool gateway = true;

  std::string bin_dir;  // empty: this program's own folder
  std::string log_dir;  // empty: no log files
  std::string log_level = "info";
  double drain_timeout_s = 30;
  bool json = false;
  bool verbose = false;

  // Passed on as they are.
  std::vector<std::string> engine_flags;
  std::vector<std::string> tokenizer_flags;
  std::vector<std::string> parser_flags;
  std::vector<std::string> gateway_flags;
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_UP_OPTIONS_H_

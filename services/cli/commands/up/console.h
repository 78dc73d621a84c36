#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_CONSOLE_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_CONSOLE_H_

#include <cstdint>
#include <string_view>

namespace tessera::cli {

// Lines on standard error. A terminal that was paused, or a pipe that nobody reads, must not hold
// up the supervision: lines that cannot be written at once are dropped and counted, and the count
// is said with the next that can. Threading: one thread.
class Console final {
 public:
  explicit Console(int fd);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Writes `who`, ": ", `text` and a newline.
  void Say(std::string_view who, std::string_view text);

 private:
  bool Write(std::string_view line);

  int fd_;
  bool owned_ = false;
  uint64_t dropped_ = 0;
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_CONSOLE_H_

#ifndef TESSERA_SERVICES_CLI_COMMANDS_CHAT_LINE_READER_H_
#define TESSERA_SERVICES_CLI_COMMANDS_CHAT_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera::cli {

// A longer line is cut into lines of this size.
inline constexpr size_t kInputLineBytesMax = size_t{1} << 20;

enum class LineEvent : uint8_t {
  kLine,         // a line, without its newline; the last one may lack it
  kEnd,          // nothing more will come
  kInterrupted,  // interrupt_fd became readable first; what was typed of a line is dropped
};

// Lines of a descriptor, waited for together with an interrupt. Borrows both descriptors; reads
// `fd` and never `interrupt_fd` (-1: never). Threading: one thread.
class LineReader final {
 public:
  LineReader(int fd, int interrupt_fd) : fd_(fd), interrupt_fd_(interrupt_fd) {}

  // Waits; fills `line` with kLine only.
  LineEvent Read(std::string& line);

 private:
  bool TakeLine(std::string& line);

  const int fd_;
  const int interrupt_fd_;
  bool ended_ = false;
  std::string buffer_;
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_CHAT_LINE_READER_H_

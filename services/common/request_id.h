#ifndef TESSERA_SERVICES_COMMON_REQUEST_ID_H_
#define TESSERA_SERVICES_COMMON_REQUEST_ID_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::services {

// A longer id from outside is replaced by one of ours.
inline constexpr size_t kRequestIdBytesMax = 128;

// Draws request ids: "req-" and 16 hexadecimal digits. Ids of one generator differ from each other
// for 2^64 draws; those of two processes differ because their seeds do.
// Threading: Next may be called from any thread. Cost: one atomic addition and a string.
class RequestIds final {
 public:
  // Equal seeds give equal ids: for tests.
  explicit RequestIds(uint64_t seed) : state_(seed) {}
  // Seeded from the operating system; called once, by the process host.
  static uint64_t SeedFromOs();

  std::string Next();
  // A well-mixed number from the same sequence (for tool-call ids, back-off jitter).
  uint64_t NextNumber();

 private:
  std::atomic<uint64_t> state_;
};

// Whether an id from outside may be used as it is: 1 to kRequestIdBytesMax bytes of printable
// ASCII without space, so that it can stand in a header and in a log line.
bool IsUsableRequestId(std::string_view id);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_REQUEST_ID_H_

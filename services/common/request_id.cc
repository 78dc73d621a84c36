#include "services/common/request_id.h"

#include <random>

#include "absl/strings/str_cat.h"

namespace tessera::services {
namespace {

// Steps and mixer of SplitMix64: an odd step visits every state, and the mixer is a bijection, so
// no number repeats within 2^64 draws.
constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t RequestIds::SeedFromOs() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

uint64_t RequestIds::NextNumber() {
  return Mix(state_.fetch_add(kStep, std::memory_order_relaxed) + kStep);
}

std::string RequestIds::Next() {
  return absl::StrCat("req-", absl::Hex(NextNumber(), absl::kZeroPad16));
}

bool IsUsableRequestId(std::string_view id) {
  if (id.empty() || id.size() > kRequestIdBytesMax) return false;
  for (const char c : id) {
    if (c <= ' ' || c > '~') return false;
  }
  return true;
}

}  // namespace tessera::services

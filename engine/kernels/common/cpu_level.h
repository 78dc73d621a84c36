#ifndef TESSERA_ENGINE_KERNELS_COMMON_CPU_LEVEL_H_
#define TESSERA_ENGINE_KERNELS_COMMON_CPU_LEVEL_H_

#include <cstdint>

namespace tessera::engine {

// Which version of a CPU kernel runs. Every machine has the reference.
enum class CpuLevel : uint8_t {
  kReference,  // plain loops
  kAvx2,       // AVX2, FMA and F16C
};

// The best level of this machine. Cost: cheap, but ask once.
inline CpuLevel DetectCpuLevel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return CpuLevel::kAvx2;
#endif
  return CpuLevel::kReference;
}

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_KERNELS_COMMON_CPU_LEVEL_H_

#ifndef TESSERA_ENGINE_CORE_CLOCK_H_
#define TESSERA_ENGINE_CORE_CLOCK_H_

#include <cstdint>

namespace tessera::engine {

// Time as the engine sees it: microseconds that only grow, from an arbitrary start. Injected, so
// that tests own it; a jump of the wall clock moves no deadline.
// Threading: NowUs may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual uint64_t NowUs() const = 0;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_CORE_CLOCK_H_

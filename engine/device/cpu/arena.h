#ifndef TESSERA_ENGINE_DEVICE_CPU_ARENA_H_
#define TESSERA_ENGINE_DEVICE_CPU_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace tessera::engine {

// One block of memory that everything of a model is taken from, front to back, and that is given
// back as a whole. Made twice over: first counting, to learn how much is needed (Take returns null
// then and nothing may be written), then with that many bytes. Threading: one thread. Errors:
// taking more than was counted is our own bug and aborts.
class Arena {
 public:
  static constexpr size_t kAlignment = 64;

  // A counting arena.
  Arena() = default;
  // Memory is not cleared. `valid()` is false when the system has not got that much.
  explicit Arena(size_t bytes)
      : memory_(static_cast<std::byte*>(std::aligned_alloc(kAlignment, RoundUp(bytes)))),
        capacity_(RoundUp(bytes)),
        counting_(false) {}

  bool counting() const { return counting_; }
  bool valid() const { return counting_ || memory_ != nullptr; }
  size_t used() const { return used_; }

  // `count` values of T, aligned to kAlignment.
  template <class T>
  T* Take(size_t count) {
    const size_t begin = used_;
    used_ += RoundUp(count * sizeof(T));
    if (counting_) return nullptr;
    if (used_ > capacity_) std::abort();
    return reinterpret_cast<T*>(memory_.get() + begin);
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  static size_t RoundUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  std::unique_ptr<std::byte, Free> memory_;
  size_t capacity_ = 0;
  size_t used_ = 0;
  bool counting_ = true;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_DEVICE_CPU_ARENA_H_

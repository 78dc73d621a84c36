#ifndef TESSERA_ENGINE_CORE_CHECK_H_
#define TESSERA_ENGINE_CORE_CHECK_H_

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tessera::engine {

// Prints what is broken and aborts. Only for what our own bug alone can cause; whatever input, a
// peer or the machine can cause is an absl::Status.
[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition,
                                     const std::string& values) {
  std::fprintf(stderr, "%s:%d: check failed: %s %s\n", file, line, condition, values.c_str());
  std::abort();
}

}  // namespace tessera::engine

// `values` is an expression that makes a std::string; it is evaluated only when the check fails.
#define TESSERA_CHECK(condition, values)                                        \
  do {                                                                          \
    if (!(condition)) [[unlikely]] {                                            \
      ::tessera::engine::CheckFailed(__FILE__, __LINE__, #condition, (values)); \
    }                                                                           \
  } while (false)

#endif  // TESSERA_ENGINE_CORE_CHECK_H_

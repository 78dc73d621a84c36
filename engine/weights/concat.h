#ifndef TESSERA_ENGINE_WEIGHTS_CONCAT_H_
#define TESSERA_ENGINE_WEIGHTS_CONCAT_H_

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

namespace tessera::engine {

// The pieces one after the other: text, whole numbers, floats as %g. absl::StrCat of the system's
// Abseil (built as C++14) does not take std::string_view.
template <typename... Pieces>
std::string Concat(const Pieces&... pieces) {
  std::string out;
  const auto append = [&out](const auto& piece) {
    using Piece = std::decay_t<decltype(piece)>;
    if constexpr (std::is_floating_point_v<Piece>) {
      char text[32];
      std::snprintf(text, sizeof text, "%g", static_cast<double>(piece));
      out += text;
    } else if constexpr (std::is_integral_v<Piece>) {
      out += std::to_string(piece);
    } else {
      out += std::string_view(piece);
    }
  };
  (append(pieces), ...);
  return out;
}

// The elements of `range` with `separator` between them.
template <typename Range>
std::string Join(const Range& range, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& element : range) {
    if (!first) out += separator;
    first = false;
    out += Concat(element);
  }
  return out;
}

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WEIGHTS_CONCAT_H_

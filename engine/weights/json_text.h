#ifndef TESSERA_ENGINE_WEIGHTS_JSON_TEXT_H_
#define TESSERA_ENGINE_WEIGHTS_JSON_TEXT_H_

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

// Reading configuration files that a stranger wrote.

namespace tessera::engine {

inline constexpr int kJsonDepthMax = 64;

// Reads a regular file of at most `bytes_max` bytes.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t bytes_max);

// Parses `text`, called `name` in errors, which must be an object. NaN, Infinity and -Infinity
// outside strings, as Python writes them, become the strings "NaN", "Infinity" and "-Infinity",
// which JsonFields::Float understands. Deeper nesting than kJsonDepthMax is refused.
absl::StatusOr<nlohmann::json> ParsePythonJson(std::string_view text, std::string_view name);

// Typed access to the fields of an object, or of several of which the first that has a field wins
// (a layer's own object before the global one). JSON null counts as absent. The first error sticks
// in status(); from then on every getter returns its fallback. Borrows the objects.
class JsonFields {
 public:
  using Names = std::initializer_list<std::string_view>;  // spellings, the preferred one first

  JsonFields(const nlohmann::json& object, std::string path) {
    scopes_.emplace_back(&object, std::move(path));
  }
  // The same with `object` looked at first. Its errors are its own.
  JsonFields Within(const nlohmann::json& object, std::string path) const;

  // A whole number in [min, max]. No fallback: the field must be there.
  uint32_t Uint(Names names, uint32_t min, uint32_t max,
                std::optional<uint32_t> fallback = std::nullopt);
  double Float(Names names, double min, double max, std::optional<double> fallback = std::nullopt);
  bool Bool(Names names, bool fallback);
  std::string String(Names names, std::string_view fallback);
  // The value itself, or null when absent.
  const nlohmann::json* Find(Names names) const;
  // Where the field was found, or where it would be: "config.json: block_configs[3].n_group".
  std::string PathOf(Names names) const;

  void Fail(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }
  const absl::Status& status() const { return status_; }

 private:
  std::pair<const nlohmann::json*, std::string> Locate(Names names) const;

  std::vector<std::pair<const nlohmann::json*, std::string>> scopes_;  // most specific first
  absl::Status status_;
};

// A number, or one of the three Python literals; nullopt for anything else.
std::optional<double> NumberOf(const nlohmann::json& value);

// `value` as text for an error message, shortened.
std::string Excerpt(const nlohmann::json& value);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WEIGHTS_JSON_TEXT_H_

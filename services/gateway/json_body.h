#ifndef TESSERA_SERVICES_GATEWAY_JSON_BODY_H_
#define TESSERA_SERVICES_GATEWAY_JSON_BODY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace tessera::gateway {

// What a request body may hold; more is refused before anything is built from it.
inline constexpr size_t kJsonDepthMax = 128;
inline constexpr size_t kJsonValuesMax = 4'000'000;
// The JSON library looks a key of an object up by going through all of them, so the keys of one
// object and those of the whole body are bounded: at worst 10^8 comparisons.
inline constexpr size_t kJsonObjectKeysMax = 1'024;
inline constexpr size_t kJsonKeysMax = 200'000;

// Parses a request body, which must be one JSON object. The keys keep their order.
// Errors: kInvalidArgument saying what is wrong and at which byte: not JSON, not an object, a limit
// above, a NUL character (raw or escaped), broken UTF-8. Never recurses, whatever the depth.
absl::StatusOr<nlohmann::ordered_json> ParseJsonBody(std::string_view body);

// The members of a JSON object (as `"key": value`) or the elements of an array, as they stand in
// the text. `container` must be valid JSON. Cost: one pass.
std::vector<std::string_view> SplitJson(std::string_view container);

// The text of the value of `key` in a JSON object, as the client wrote it: numbers keep all digits
// and keys their order. Empty when the key is not there (or written with escapes).
std::string_view RawMember(std::string_view object, std::string_view key);

// Reads the fields of one JSON object and remembers the first that is wrong. JSON null is the same
// as absent. Unknown fields are ignored.
//
//   JsonFields fields(root, "");
//   if (auto value = fields.Bool("stream")) stream = *value;
//   if (!fields.status().ok()) return fields.status();
//
// Ownership: borrows the object.
class JsonFields final {
 public:
  // `prefix` stands before the field names in errors ("messages[2].").
  JsonFields(const nlohmann::ordered_json& object, std::string prefix)
      : object_(object), prefix_(std::move(prefix)) {}

  const nlohmann::ordered_json* Find(const char* key) const;
  std::optional<bool> Bool(const char* key);
  std::optional<double> Number(const char* key);
  // A number with a fraction, or outside [least, most], is an error that names the limit.
  std::optional<int64_t> Integer(const char* key, int64_t least, int64_t most);
  std::optional<std::string> String(const char* key);
  // The array, or null.
  const nlohmann::ordered_json* Array(const char* key, size_t elements_max);
  const nlohmann::ordered_json* Object(const char* key);

  // Records an error about a field, unless there is one.
  void Fail(std::string_view key, std::string_view message);
  void Fail(const absl::Status& status);
  const absl::Status& status() const { return status_; }
  const std::string& prefix() const { return prefix_; }

 private:
  void WrongType(const char* key, const nlohmann::ordered_json& value, std::string_view wanted);

  const nlohmann::ordered_json& object_;
  const std::string prefix_;
  absl::Status status_;
};

// "a string", "an array": how errors call the kind of a value.
std::string_view KindOf(const nlohmann::ordered_json& value);

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_JSON_BODY_H_

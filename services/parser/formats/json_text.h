#ifndef TESSERA_SERVICES_PARSER_FORMATS_JSON_TEXT_H_
#define TESSERA_SERVICES_PARSER_FORMATS_JSON_TEXT_H_

// JSON as text: values pass from the model's output to the arguments without becoming numbers or
// trees on the way, so that no digit is lost and the cost stays linear.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::parser {

inline constexpr int kValueNestingMax = 128;  // deeper values stay raw text

enum class JsonKind : uint8_t { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

struct JsonValue {
  JsonKind kind = JsonKind::kNull;
  std::string text;  // valid JSON: ", " and ": " between parts, non-ASCII unescaped, no key twice
};

// Appends `text` as the inside of a JSON string: quotes, backslashes and control characters
// escaped. REQUIRES: valid UTF-8.
void AppendJsonEscaped(std::string_view text, std::string* out);

// `text`, white space around it ignored, if all of it is JSON; nothing if it is not, nests deeper
// than kValueNestingMax or holds a number beyond a double. Of a key used twice the last value
// stands, in the first place.
std::optional<JsonValue> ReadJson(std::string_view text);

// The same for a Python literal that is a dict, a list or a tuple (which becomes an array).
std::optional<JsonValue> ReadPythonLiteral(std::string_view text);

// "+7", "007" -> "7", "007" without sign and leading zeros; nothing unless `text` is an optional
// sign and digits. All digits are kept.
std::optional<std::string> ReadInteger(std::string_view text);

// A decimal or exponent form, as JSON ("+.5" -> "0.5"); nothing if it is none or is not finite.
std::optional<std::string> ReadDecimal(std::string_view text);

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_JSON_TEXT_H_

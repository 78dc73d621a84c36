#ifndef TESSERA_SERVICES_PARSER_FORMATS_VALUE_TYPES_H_
#define TESSERA_SERVICES_PARSER_FORMATS_VALUE_TYPES_H_

// What a value's text is by the JSON schema of its parameter (chat format, "Types by schema").

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nlohmann/json.hpp"
#include "services/parser/formats/output_parser.h"

namespace tessera::parser {

// A schema is the caller's: $ref may turn in circles and anyOf may branch without end.
inline constexpr int kSchemaDepthMax = 16;
inline constexpr int kSchemaNodesMax = 1000;  // looked at for one parameter

// The types that a schema allows, as a set of bits.
class TypeSet {
 public:
  enum Bit : uint8_t {
    kNull = 1,
    kInteger = 2,
    kNumber = 4,
    kBoolean = 8,
    kObject = 16,
    kArray = 32,
    kString = 64,
    kUnknown = 128,  // a name that is no type: nothing fits it
  };
  constexpr TypeSet() = default;
  constexpr explicit TypeSet(uint8_t bits) : bits_(bits) {}
  bool Has(Bit bit) const { return (bits_ & bit) != 0; }
  bool IsOnly(Bit bit) const { return bits_ == bit; }
  bool empty() const { return bits_ == 0; }
  void Add(uint8_t bits) { bits_ = static_cast<uint8_t>(bits_ | bits); }
  uint8_t bits() const { return bits_; }

 private:
  uint8_t bits_ = 0;
};

// The types of `schema`; `root` is the tool's whole schema, which $ref points into. Nothing known:
// string.
TypeSet CollectTypes(const nlohmann::ordered_json& schema, const nlohmann::ordered_json& root);

// The JSON of `value` by its types; the first that fits in the order of the chat format. Never
// fails: what fits nothing is JSON of another kind, or else the raw text as a string.
struct TypedValue {
  std::string json;
  bool raw_string = false;  // fits nothing
};
TypedValue TypeValue(TypeSet types, std::string_view value);

// Decides as early as it can that a value which may be a string is one, so that it can be streamed.
class StringGuess {
 public:
  explicit StringGuess(TypeSet types);
  // The next bytes of the value. True once nothing but a string fits. REQUIRES: types has kString.
  bool Feed(std::string_view text);

 private:
  enum class Phase : uint8_t { kLeading, kWord, kTrailing, kStructured, kString };
  void FeedByte(char c);
  bool WordFits(char c);

  TypeSet types_;
  Phase phase_ = Phase::kLeading;
  bool number_fits_;
  uint8_t words_fit_;  // a bit for each of null, true, false
  size_t word_bytes_ = 0;
};

// The tools of a request by name. Schemas are looked at when a call asks.
class ToolTable {
 public:
  explicit ToolTable(const std::vector<Tool>* tools);
  // Null if not declared. The first of two tools of one name.
  const Tool* Find(std::string_view name) const;
  bool empty() const { return by_name_.empty(); }

 private:
  std::map<std::string_view, const Tool*> by_name_;
};

// The parameters of one tool; `tool` may be null (not declared: all are strings).
class ParameterTypes {
 public:
  explicit ParameterTypes(const Tool* tool = nullptr) : tool_(tool) {}
  bool Declares(std::string_view name) const;
  // String for what is not declared.
  TypeSet Of(std::string_view name) const;

 private:
  const nlohmann::ordered_json* Find(std::string_view name) const;

  const Tool* tool_;
  mutable bool indexed_ = false;
  // nlohmann::ordered_json finds a key by walking all of them.
  mutable std::unordered_map<std::string_view, const nlohmann::ordered_json*> properties_;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_VALUE_TYPES_H_

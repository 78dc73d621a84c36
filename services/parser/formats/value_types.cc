#include "services/parser/formats/value_types.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "services/parser/formats/json_text.h"
#include "services/parser/formats/text_buffer.h"

namespace tessera::parser {
namespace {

using Json = nlohmann::ordered_json;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() && std::equal(text.begin(), text.end(), lower.begin(),
                                                   [](char a, char b) { return Lower(a) == b; });
}

bool IsPrefixAndDigits(std::string_view name, std::string_view prefix) {
  return name.substr(0, prefix.size()) == prefix &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

uint8_t TypeOfName(std::string_view written) {
  static constexpr std::pair<std::string_view, TypeSet::Bit> kNames[] = {
      {"null", TypeSet::kNull},        {"integer", TypeSet::kInteger},
      {"number", TypeSet::kNumber},    {"boolean", TypeSet::kBoolean},
      {"object", TypeSet::kObject},    {"array", TypeSet::kArray},
      {"string", TypeSet::kString},    {"str", TypeSet::kString},
      {"text", TypeSet::kString},      {"varchar", TypeSet::kString},
      {"char", TypeSet::kString},      {"enum", TypeSet::kString},
      {"long", TypeSet::kInteger},     {"short", TypeSet::kInteger},
      {"unsigned", TypeSet::kInteger}, {"double", TypeSet::kNumber},
      {"bool", TypeSet::kBoolean},     {"dict", TypeSet::kObject},
      {"list", TypeSet::kArray},       {"arr", TypeSet::kArray},
      {"sequence", TypeSet::kArray},
  };
  std::string name(Trim(written));
  std::transform(name.begin(), name.end(), name.begin(), Lower);
  for (const auto& [known, bit] : kNames) {
    if (name == known) return bit;
  }
  if (IsPrefixAndDigits(name, "int") || IsPrefixAndDigits(name, "uint")) return TypeSet::kInteger;
  if (IsPrefixAndDigits(name, "float")) return TypeSet::kNumber;
  return TypeSet::kUnknown;
}

uint8_t TypeOfValue(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return TypeSet::kNull;
    case Json::value_t::boolean:
      return TypeSet::kBoolean;
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return TypeSet::kInteger;
    case Json::value_t::number_float:
      return TypeSet::kNumber;
    case Json::value_t::object:
      return TypeSet::kObject;
    case Json::value_t::array:
      return TypeSet::kArray;
    default:
      return TypeSet::kString;
  }
}

// Follows "#/$defs/Name"; null if it leads nowhere.
const Json* Resolve(const Json& root, std::string_view reference) {
  if (reference.substr(0, 1) != "#") return nullptr;
  reference.remove_prefix(1);
  const Json* at = &root;
  while (!reference.empty()) {
    if (reference[0] != '/') return nullptr;
    reference.remove_prefix(1);
    const size_t slash = std::min(reference.find('/'), reference.size());
    std::string key;
    for (size_t i = 0; i < slash; ++i) {  // "~1" is a slash, "~0" a tilde
      if (reference[i] == '~' && i + 1 < slash && reference[i + 1] <= '1') {
        key.push_back(reference[++i] == '1' ? '/' : '~');
      } else {
        key.push_back(reference[i]);
      }
    }
    reference.remove_prefix(slash);
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

class TypeCollector {
 public:
  explicit TypeCollector(const Json& root) : root_(root) {}

  void Collect(const Json& schema, int depth) {
    if (!schema.is_object() || depth > kSchemaDepthMax || ++nodes_ > kSchemaNodesMax) return;
    bool typed = false;
    bool properties = false;
    bool items = false;
    for (const auto& [key, value] : schema.items()) {
      if (key == "type") {
        typed = CollectNames(value) || typed;
      } else if (key == "enum" && value.is_array()) {
        for (const Json& choice : value) types_.Add(TypeOfValue(choice));
        typed = typed || !value.empty();
      } else if (key == "const") {
        types_.Add(TypeOfValue(value));
        typed = true;
      } else if (key == "nullable") {
        nullable_ = nullable_ || (value.is_boolean() && value.get<bool>());
      } else if ((key == "anyOf" || key == "oneOf" || key == "allOf") && value.is_array()) {
        for (const Json& branch : value) Collect(branch, depth + 1);
      } else if (key == "$ref" && value.is_string()) {
        const Json* target = Resolve(root_, value.get_ref<const std::string&>());
        if (target != nullptr) Collect(*target, depth + 1);
      } else if (key == "properties" || key == "additionalProperties") {
        properties = true;
      } else if (key == "items") {
        items = true;
      }
    }
    if (typed) return;
    if (properties) {
      types_.Add(TypeSet::kObject);
    } else if (items) {
      types_.Add(TypeSet::kArray);
    }
  }

  TypeSet Result() {
    // Nothing known, or only that null is allowed as well: a string.
    if (types_.empty()) types_.Add(TypeSet::kString);
    if (nullable_) types_.Add(TypeSet::kNull);
    return types_;
  }

 private:
  bool CollectNames(const Json& type) {
    if (type.is_string()) {
      types_.Add(TypeOfName(type.get_ref<const std::string&>()));
      return true;
    }
    bool any = false;
    if (type.is_array()) {
      for (const Json& name : type) {
        if (!name.is_string()) continue;
        types_.Add(TypeOfName(name.get_ref<const std::string&>()));
        any = true;
      }
    }
    return any;
  }

  const Json& root_;
  TypeSet types_;
  bool nullable_ = false;
  int nodes_ = 0;
};

std::string Quoted(std::string_view text) {
  std::string json = "\"";
  AppendJsonEscaped(text, &json);
  json.push_back('"');
  return json;
}

// "5.0" where an integer is wanted.
std::optional<std::string> ReadWholeDecimal(std::string_view text) {
  const size_t point = text.find('.');
  if (point == std::string_view::npos || point + 1 == text.size() ||
      text.find_first_not_of('0', point + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  return ReadInteger(text.substr(0, point));
}

std::optional<std::string> ReadScalar(TypeSet types, std::string_view text) {
  const bool string = types.Has(TypeSet::kString);
  if ((types.Has(TypeSet::kNull) || !string) && EqualsIgnoringCase(text, "null")) return "null";
  if (!string && text == "None") return "null";
  if (types.Has(TypeSet::kInteger) || types.Has(TypeSet::kNumber)) {
    if (auto integer = ReadInteger(text)) return integer;
  }
  if (types.Has(TypeSet::kInteger) && !types.Has(TypeSet::kNumber)) {
    if (auto integer = ReadWholeDecimal(text)) return integer;
  }
  if (types.Has(TypeSet::kNumber)) {
    if (auto decimal = ReadDecimal(text)) return decimal;
  }
  if (types.Has(TypeSet::kBoolean)) {
    if (EqualsIgnoringCase(text, "true") || text == "1") return "true";
    if (EqualsIgnoringCase(text, "false") || text == "0") return "false";
  }
  return std::nullopt;
}

}  // namespace

TypeSet CollectTypes(const Json& schema, const Json& root) {
  TypeCollector collector(root);
  collector.Collect(schema, /*depth=*/0);
  return collector.Result();
}

TypedValue TypeValue(TypeSet types, std::string_view value) {
  if (types.IsOnly(TypeSet::kString)) return {Quoted(value), false};
  const std::string_view text = Trim(value);
  if (auto scalar = ReadScalar(types, text)) return {*std::move(scalar), false};
  std::optional<JsonValue> json = ReadJson(text);
  std::optional<JsonValue> python;
  if (!json.has_value()) python = ReadPythonLiteral(text);
  for (const auto& [bit, kind] : {std::pair{TypeSet::kObject, JsonKind::kObject},
                                  std::pair{TypeSet::kArray, JsonKind::kArray}}) {
    if (!types.Has(bit)) continue;
    if (json.has_value() && json->kind == kind) return {std::move(json->text), false};
    if (python.has_value() && python->kind == kind) return {std::move(python->text), false};
  }
  if (types.Has(TypeSet::kString)) return {Quoted(value), false};
  if (json.has_value()) return {std::move(json->text), false};
  return {Quoted(value), true};
}

StringGuess::StringGuess(TypeSet types)
    : types_(types),
      number_fits_(types.Has(TypeSet::kInteger) || types.Has(TypeSet::kNumber) ||
                   types.Has(TypeSet::kBoolean)),
      words_fit_(static_cast<uint8_t>((types.Has(TypeSet::kNull) ? 1 : 0) |
                                      (types.Has(TypeSet::kBoolean) ? 6 : 0))) {}

bool StringGuess::Feed(std::string_view text) {
  for (const char c : text) {
    if (phase_ == Phase::kStructured || phase_ == Phase::kString) break;
    FeedByte(c);
  }
  return phase_ == Phase::kString;
}

void StringGuess::FeedByte(char c) {
  if (IsSpace(c)) {
    if (phase_ == Phase::kWord) phase_ = Phase::kTrailing;
    return;
  }
  if (phase_ == Phase::kLeading) {
    if ((c == '{' && types_.Has(TypeSet::kObject)) ||
        ((c == '[' || c == '(') && types_.Has(TypeSet::kArray))) {
      phase_ = Phase::kStructured;
      return;
    }
    phase_ = Phase::kWord;
  }
  if (phase_ == Phase::kTrailing || !WordFits(c)) phase_ = Phase::kString;
}

bool StringGuess::WordFits(char c) {
  static constexpr std::array<std::string_view, 3> kWords = {"null", "true", "false"};
  for (size_t i = 0; i < kWords.size(); ++i) {
    if (word_bytes_ >= kWords[i].size() || kWords[i][word_bytes_] != Lower(c)) {
      words_fit_ = static_cast<uint8_t>(words_fit_ & ~(1u << i));
    }
  }
  number_fits_ = number_fits_ && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' ||
                                  c == 'e' || c == 'E');
  ++word_bytes_;
  return number_fits_ || words_fit_ != 0;
}

ToolTable::ToolTable(const std::vector<Tool>* tools) {
  for (const Tool& tool : *tools) by_name_.emplace(tool.name, &tool);
}

const Tool* ToolTable::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Json* ParameterTypes::Find(std::string_view name) const {
  if (tool_ == nullptr || !tool_->parameters.is_object()) return nullptr;
  if (!indexed_) {
    indexed_ = true;
    const auto properties = tool_->parameters.find("properties");
    if (properties != tool_->parameters.end() && properties->is_object()) {
      for (auto it = properties->begin(); it != properties->end(); ++it) {
        properties_.emplace(it.key(), &it.value());
      }
    }
  }
  const auto found = properties_.find(name);
  return found == properties_.end() ? nullptr : found->second;
}

bool ParameterTypes::Declares(std::string_view name) const { return Find(name) != nullptr; }

TypeSet ParameterTypes::Of(std::string_view name) const {
  const Json* schema = Find(name);
  if (schema == nullptr) return TypeSet(TypeSet::kString);
  return CollectTypes(*schema, tool_->parameters);
}

}  // namespace tessera::parser

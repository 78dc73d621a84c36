#include "engine/weights/json_text.h"

#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>

#include "engine/weights/concat.h"

namespace tessera::engine {
namespace {

using nlohmann::json;

constexpr size_t kExcerptMax = 60;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Quotes Python's number literals and checks the depth, in one pass that only knows strings and
// brackets. What is wrong otherwise is left to the parser.
absl::StatusOr<std::string> QuotePythonLiterals(std::string_view text, std::string_view name) {
  static constexpr std::string_view kLiterals[] = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  out.reserve(text.size() + 16);
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      out.push_back(c);
      if (c == '\\' && i + 1 < text.size()) {
        out.push_back(text[++i]);
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') {
      if (++depth > kJsonDepthMax) {
        return absl::InvalidArgumentError(
            Concat(name, ": nested deeper than ", kJsonDepthMax, " levels at byte ", i));
      }
    }
    if (c == '}' || c == ']') --depth;
    bool quoted = false;
    if ((c == '-' || c == 'I' || c == 'N') && (i == 0 || !IsNameByte(text[i - 1]))) {
      for (std::string_view literal : kLiterals) {
        const size_t end = i + literal.size();
        if (text.substr(i, literal.size()) == literal &&
            (end >= text.size() || !IsNameByte(text[end]))) {
          out += Concat("\"", literal, "\"");
          i = end - 1;
          quoted = true;
          break;
        }
      }
    }
    if (!quoted) out.push_back(c);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t bytes_max) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) {
    return absl::NotFoundError(Concat(path, ": no such file"));
  }
  if (!S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(Concat(path, ": not a regular file"));
  }
  if (static_cast<uint64_t>(facts.st_size) > bytes_max) {
    return absl::InvalidArgumentError(
        Concat(path, ": is ", facts.st_size, " bytes, more than the limit of ", bytes_max));
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<size_t>(facts.st_size), '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(text.size()))) {
    return absl::InvalidArgumentError(Concat(path, ": cannot be read"));
  }
  return text;
}

absl::StatusOr<json> ParsePythonJson(std::string_view text, std::string_view name) {
  auto quoted = QuotePythonLiterals(text, name);
  if (!quoted.ok()) return quoted.status();
  // The library's only way to say where the mistake is, without building a value for it.
  json value;
  try {
    value = json::parse(*quoted);
  } catch (const json::exception& e) {
    return absl::InvalidArgumentError(Concat(name, ": is not JSON: ", e.what()));
  }
  if (!value.is_object()) {
    return absl::InvalidArgumentError(
        Concat(name, ": must be a JSON object, but is ", Excerpt(value)));
  }
  return value;
}

std::optional<double> NumberOf(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::string Excerpt(const json& value) {
  if (value.is_object()) return Concat("an object of ", value.size(), " fields");
  if (value.is_array() && value.size() > 8) return Concat("a list of ", value.size());
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  if (text.size() > kExcerptMax) text = Concat(text.substr(0, kExcerptMax), "...");
  return text;
}

JsonFields JsonFields::Within(const json& object, std::string path) const {
  JsonFields inner = *this;
  inner.scopes_.insert(inner.scopes_.begin(), {&object, std::move(path)});
  inner.status_ = absl::OkStatus();
  return inner;
}

std::pair<const json*, std::string> JsonFields::Locate(Names names) const {
  for (const auto& [object, path] : scopes_) {
    if (!object->is_object()) continue;
    for (std::string_view name : names) {
      const auto it = object->find(std::string(name));
      if (it != object->end() && !it->is_null()) return {&*it, Concat(path, name)};
    }
  }
  return {nullptr, Concat(scopes_.back().second, *names.begin())};
}

const json* JsonFields::Find(Names names) const { return Locate(names).first; }
std::string JsonFields::PathOf(Names names) const { return Locate(names).second; }

uint32_t JsonFields::Uint(Names names, uint32_t min, uint32_t max,
                          std::optional<uint32_t> fallback) {
  const auto [value, path] = Locate(names);
  if (value == nullptr) {
    if (!fallback) Fail(absl::InvalidArgumentError(Concat(path, ": is missing")));
    return fallback.value_or(min);
  }
  // Python writes whole floats for whole numbers now and then.
  const std::optional<double> number = NumberOf(*value);
  if (!number || !(*number >= min && *number <= max) || *number != std::floor(*number)) {
    Fail(absl::InvalidArgumentError(Concat(path, ": is ", Excerpt(*value),
                                           "; must be a whole number from ", min, " to ", max)));
    return fallback.value_or(min);
  }
  return static_cast<uint32_t>(*number);
}

double JsonFields::Float(Names names, double min, double max, std::optional<double> fallback) {
  const auto [value, path] = Locate(names);
  if (value == nullptr) {
    if (!fallback) Fail(absl::InvalidArgumentError(Concat(path, ": is missing")));
    return fallback.value_or(min);
  }
  const std::optional<double> number = NumberOf(*value);
  if (!number || !(*number >= min && *number <= max)) {
    Fail(absl::InvalidArgumentError(
        Concat(path, ": is ", Excerpt(*value), "; must be a number from ", min, " to ", max)));
    return fallback.value_or(min);
  }
  return *number;
}

bool JsonFields::Bool(Names names, bool fallback) {
  const auto [value, path] = Locate(names);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    Fail(absl::InvalidArgumentError(
        Concat(path, ": is ", Excerpt(*value), "; must be true or false")));
    return fallback;
  }
  return value->get<bool>();
}

std::string JsonFields::String(Names names, std::string_view fallback) {
  const auto [value, path] = Locate(names);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) {
    Fail(absl::InvalidArgumentError(Concat(path, ": is ", Excerpt(*value), "; must be a string")));
    return std::string(fallback);
  }
  return value->get<std::string>();
}

}  // namespace tessera::engine

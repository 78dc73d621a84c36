#include "services/gateway/json_body.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "services/common/field_error.h"
#include "services/common/status_map.h"

namespace tessera::gateway {
namespace {

using nlohmann::ordered_json;

absl::string_view ForAbsl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status BadBody(std::string_view message) {
  return services::WithReason(
      absl::InvalidArgumentError(absl::StrCat("the request body ", ForAbsl(message))),
      "INVALID_JSON");
}

// Counts what the limits bound, on the raw text and without recursion. Whether the text is JSON at
// all is the parser's business; a text that is none may be counted wrongly, but never too low.
class BodyScan {
 public:
  absl::Status Run(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\0') return Nul(i);
      if (in_string_) {
        if (c == '\\') {
          if (text.substr(i + 1, 5) == "u0000") return Nul(i);
          ++i;
          if (i < text.size() && text[i] == '\0') return Nul(i);
        } else if (c == '"') {
          in_string_ = false;
        }
        continue;
      }
      if (const absl::Status status = Outside(c, i); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Nul(size_t at) {
    return BadBody(absl::StrCat("holds a NUL character at byte ", at, "; remove it"));
  }

  absl::Status Outside(char c, size_t at) {
    switch (c) {
      case '"':
        in_string_ = true;
        break;
      case '{':
      case '[':
        if (depth_ == kJsonDepthMax) {
          return BadBody(
              absl::StrCat("is nested more deeply than ", kJsonDepthMax, " levels at byte ", at));
        }
        keys_[depth_++] = 0;
        break;
      case '}':
      case ']':
        if (depth_ > 0) --depth_;
        break;
      case ',':
        if (++values_ > kJsonValuesMax) {
          return BadBody(absl::StrCat("holds more than ", kJsonValuesMax, " values"));
        }
        break;
      case ':':
        if (++keys_total_ > kJsonKeysMax) {
          return BadBody(absl::StrCat("holds more than ", kJsonKeysMax, " keys"));
        }
        if (depth_ > 0 && ++keys_[depth_ - 1] > kJsonObjectKeysMax) {
          return BadBody(absl::StrCat("holds an object of more than ", kJsonObjectKeysMax,
                                      " keys at byte ", at));
        }
        break;
      default:
        break;
    }
    return absl::OkStatus();
  }

  bool in_string_ = false;
  size_t depth_ = 0;
  size_t values_ = 0;
  size_t keys_total_ = 0;
  size_t keys_[kJsonDepthMax] = {};
};

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

// One past the closing quote of the string that begins at `at`.
size_t EndOfString(std::string_view text, size_t at) {
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return text.size();
}

}  // namespace

absl::StatusOr<ordered_json> ParseJsonBody(std::string_view body) {
  if (Trimmed(body).empty()) return BadBody("is empty; send a JSON object");
  if (const absl::Status status = BodyScan().Run(body); !status.ok()) return status;
  ordered_json root;
  try {  // the library throws; this is the one line where it may
    root = ordered_json::parse(body.begin(), body.end());
  } catch (const nlohmann::json::parse_error& error) {
    return BadBody(absl::StrCat("is not valid JSON at byte ", error.byte));
  } catch (const nlohmann::json::exception& error) {  // a number that no double holds
    return BadBody("holds a number that is too large");
  }
  if (!root.is_object()) {
    return BadBody(absl::StrCat("is ", ForAbsl(KindOf(root)), "; send a JSON object"));
  }
  return root;
}

std::vector<std::string_view> SplitJson(std::string_view container) {
  std::vector<std::string_view> parts;
  container = Trimmed(container);
  if (container.size() < 2) return parts;
  const std::string_view inside = container.substr(1, container.size() - 2);
  size_t depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < inside.size(); ++i) {
    const char c = inside[i];
    if (c == '"') {
      i = EndOfString(inside, i) - 1;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.push_back(Trimmed(inside.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  const std::string_view last = Trimmed(inside.substr(begin));
  if (!last.empty()) parts.push_back(last);
  return parts;
}

std::string_view RawMember(std::string_view object, std::string_view key) {
  std::string_view found;
  for (const std::string_view member : SplitJson(object)) {
    const size_t end = EndOfString(member, 0);
    if (end < 2 || member.substr(1, end - 2) != key) continue;
    const size_t colon = member.find(':', end);
    if (colon != std::string_view::npos) found = Trimmed(member.substr(colon + 1));
  }
  return found;  // of a key given twice the last one counts, as in the parsed object
}

std::string_view KindOf(const ordered_json& value) {
  switch (value.type()) {
    case ordered_json::value_t::null:
      return "null";
    case ordered_json::value_t::boolean:
      return "a boolean";
    case ordered_json::value_t::string:
      return "a string";
    case ordered_json::value_t::array:
      return "an array";
    case ordered_json::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

const ordered_json* JsonFields::Find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::Fail(std::string_view key, std::string_view message) {
  Fail(services::InvalidField(absl::StrCat(prefix_, ForAbsl(key)), message));
}

void JsonFields::Fail(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

void JsonFields::WrongType(const char* key, const ordered_json& value, std::string_view wanted) {
  if (!status_.ok()) return;
  status_ = services::WithReason(
      services::InvalidField(
          absl::StrCat(prefix_, key),
          absl::StrCat("must be ", ForAbsl(wanted), ", not ", ForAbsl(KindOf(value)))),
      "INVALID_TYPE");
}

std::optional<bool> JsonFields::Bool(const char* key) {
  const ordered_json* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  WrongType(key, *value, "a boolean");
  return std::nullopt;
}

std::optional<double> JsonFields::Number(const char* key) {
  const ordered_json* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  WrongType(key, *value, "a number");
  return std::nullopt;
}

std::optional<int64_t> JsonFields::Integer(const char* key, int64_t least, int64_t most) {
  const ordered_json* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) {
    WrongType(key, *value, "an integer");
    return std::nullopt;
  }
  int64_t number = 0;
  bool fits = true;
  if (value->is_number_unsigned()) {
    const uint64_t large = value->get<uint64_t>();
    fits = large <= static_cast<uint64_t>(INT64_MAX);
    number = fits ? static_cast<int64_t>(large) : 0;
  } else if (value->is_number_integer()) {
    number = value->get<int64_t>();
  } else {
    const double real = value->get<double>();
    if (real != std::floor(real)) {
      Fail(key, absl::StrCat("is ", real, "; give an integer"));
      return std::nullopt;
    }
    fits = std::fabs(real) < 9e15;
    number = fits ? static_cast<int64_t>(real) : 0;
  }
  if (fits && number >= least && number <= most) return number;
  Fail(key, absl::StrCat("is ", value->dump(), "; give an integer from ", least, " to ", most));
  return std::nullopt;
}

std::optional<std::string> JsonFields::String(const char* key) {
  const ordered_json* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  WrongType(key, *value, "a string");
  return std::nullopt;
}

const ordered_json* JsonFields::Array(const char* key, size_t elements_max) {
  const ordered_json* const value = Find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    WrongType(key, *value, "an array");
    return nullptr;
  }
  if (value->size() > elements_max) {
    Fail(key, absl::StrCat("has ", value->size(), " elements; give at most ", elements_max));
    return nullptr;
  }
  return value;
}

const ordered_json* JsonFields::Object(const char* key) {
  const ordered_json* const value = Find(key);
  if (value == nullptr) return nullptr;
  if (value->is_object()) return value;
  WrongType(key, *value, "an object");
  return nullptr;
}

}  // namespace tessera::gateway

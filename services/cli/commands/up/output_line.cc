#include "services/cli/commands/up/output_line.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

// A child's text must not steer the terminal.
std::string Printable(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7f) c = ' ';
  }
  return text;
}

std::string Text(const Json& log, const char* key) {
  const auto found = log.find(key);
  return found != log.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string Shown(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "INVALID_ARGUMENT: model.safetensors: ..." without its code, which is for programs.
std::string WithoutCode(const std::string& reason) {
  const size_t colon = reason.find(": ");
  if (colon == std::string::npos || colon == 0) return reason;
  for (size_t i = 0; i < colon; ++i) {
    if (reason[i] != '_' && (reason[i] < 'A' || reason[i] > 'Z')) return reason;
  }
  return reason.substr(colon + 2);
}

LineLevel LevelOf(const std::string& name) {
  if (name == "debug") return LineLevel::kDebug;
  if (name == "warning") return LineLevel::kWarning;
  if (name == "error") return LineLevel::kError;
  return LineLevel::kInfo;
}

std::string Sentence(const Json& log) {
  std::string text = Text(log, "msg");
  const std::string reason = Text(log, "reason");
  if (!reason.empty()) absl::StrAppend(&text, ": ", WithoutCode(reason));
  std::vector<std::string> rest;
  for (const auto& [key, value] : log.items()) {
    if (key == "ts" || key == "level" || key == "service" || key == "msg" || key == "reason" ||
        key == "source" || Shown(value).empty()) {
      continue;
    }
    rest.push_back(absl::StrCat(key, " ", Shown(value)));
  }
  if (!rest.empty()) absl::StrAppend(&text, " (", absl::StrJoin(rest, ", "), ")");
  return text;
}

}  // namespace

OutputLine ReadOutputLine(std::string_view child, std::string_view line) {
  OutputLine out;
  out.source = std::string(child);
  if (line.starts_with('{')) {
    const Json log = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (log.is_object() && log.contains("msg") && log.contains("level")) {
      out.level = LevelOf(Text(log, "level"));
      if (const std::string service = Text(log, "service"); !service.empty()) {
        out.source = Printable(service);
      }
      out.from_grpc = Text(log, "source") == "grpc";
      out.text = Printable(Sentence(log));
      return out;
    }
  }
  const std::string own = "tessera-" + out.source + ": ";
  out.own_words = line.starts_with(own);
  if (out.own_words) line.remove_prefix(own.size());
  out.text = Printable(std::string(line));
  return out;
}

std::string_view LevelPrefix(LineLevel level) {
  switch (level) {
    case LineLevel::kWarning:
      return "warning: ";
    case LineLevel::kError:
      return "error: ";
    case LineLevel::kDebug:
      return "debug: ";
    case LineLevel::kInfo:
    case LineLevel::kPlain:
      break;
  }
  return "";
}

}  // namespace tessera::cli

#include "services/cli/line_filter.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

// Reads up to the next newline; keeps at most kLineBytesMax + 1 bytes and drops the rest.
bool ReadLine(std::istream& in, std::string& line) {
  line.clear();
  std::streambuf* buffer = in.rdbuf();
  bool any = false;
  for (int c = buffer->sbumpc(); c != std::char_traits<char>::eof(); c = buffer->sbumpc()) {
    any = true;
    if (c == '\n') return true;
    if (line.size() <= kLineBytesMax) line.push_back(static_cast<char>(c));
  }
  return any;
}

absl::StatusOr<Json> Answer(const std::string& line, const LineFunction& function) {
  if (line.size() > kLineBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the line is longer than ", kLineBytesMax, " bytes; split it"));
  }
  const Json parsed = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return absl::InvalidArgumentError("the line is not valid JSON");
  return function(parsed);
}

}  // namespace

Json ErrorObject(const absl::Status& status) {
  Json error = {{"code", absl::StatusCodeToString(status.code())},
                {"message", std::string(status.message())}};
  if (const std::optional<std::string> field = services::FieldOf(status)) error["field"] = *field;
  return {{"error", error}};
}

int RunLineFilter(std::istream& in, std::ostream& out, const LineFunction& function) {
  int exit_status = 0;
  std::string line;
  while (ReadLine(in, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const absl::StatusOr<Json> answer = Answer(line, function);
    if (!answer.ok()) exit_status = 1;
    const Json& shown = answer.ok() ? *answer : ErrorObject(answer.status());
    // Text that is not UTF-8 must not end the filter: it is shown with replacement characters.
    out << shown.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
  }
  return exit_status;
}

}  // namespace tessera::cli

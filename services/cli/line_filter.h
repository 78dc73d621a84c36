#ifndef TESSERA_SERVICES_CLI_LINE_FILTER_H_
#define TESSERA_SERVICES_CLI_LINE_FILTER_H_

#include <cstddef>
#include <functional>
#include <istream>
#include <ostream>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace tessera::cli {

// What one filter command does with one line: a JSON value in, a JSON value out. A status becomes
// {"error":{"code","message","field"?}}; the field is services::FieldOf(status).
using LineFunction =
    std::function<absl::StatusOr<nlohmann::ordered_json>(const nlohmann::ordered_json& line)>;

// A line longer than this is answered with an error and skipped, never held in memory whole.
inline constexpr size_t kLineBytesMax = size_t{64} << 20;

// Reads JSON lines from `in` and writes one line to `out` for each, in order, flushing each, so
// that a caller may hold a dialogue. Empty lines are skipped. A line that is not JSON, or for which
// `function` fails, is answered with an error object, and the filter goes on.
// Returns the exit status: 0 only if no line failed.
int RunLineFilter(std::istream& in, std::ostream& out, const LineFunction& function);

// The error object above, for commands that stream.
nlohmann::ordered_json ErrorObject(const absl::Status& status);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_LINE_FILTER_H_

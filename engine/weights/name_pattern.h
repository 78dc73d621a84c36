#ifndef TESSERA_ENGINE_WEIGHTS_NAME_PATTERN_H_
#define TESSERA_ENGINE_WEIGHTS_NAME_PATTERN_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// Patterns over module paths that a configuration file brings along: they may be hostile, so the
// work of a match is limited.

namespace tessera::engine {

// Shell wildcards: * any run, ? any byte, everything else itself. Linear in practice, never worse
// than pattern times text, no recursion.
bool WildcardMatches(std::string_view pattern, std::string_view text);

// A regular expression as Python's re.match uses it: anchored at the start, not at the end.
class NameRegex {
 public:
  // `where` names the field in errors.
  static absl::StatusOr<NameRegex> Compile(std::string_view pattern, std::string where);
  NameRegex(NameRegex&&) noexcept;
  NameRegex& operator=(NameRegex&&) noexcept;
  ~NameRegex();

  // Error: kInvalidArgument when matching took more than kPatternStepsMax steps.
  absl::StatusOr<bool> Matches(std::string_view text) const;

 private:
  struct Code;
  explicit NameRegex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WEIGHTS_NAME_PATTERN_H_

#ifndef TESSERA_TOKENIZER_DETOKENIZER_STOP_MATCHER_H_
#define TESSERA_TOKENIZER_DETOKENIZER_STOP_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tessera::tokenizer {

inline constexpr size_t kStopStringsMax = 16;
inline constexpr size_t kStopStringBytesMax = 1024;

// Looks for stop strings in the text of one stream. Text that might be the beginning of a stop
// string is held back until that is decided, so no part of a stop string is ever shown.
//
// The match that ends first wins; of two that end together, the longer one. That choice and the
// output depend on the text alone, not on how it was split over calls.
//
// Threading: one thread at a time. Cost: O(bytes * stop strings).
class StopMatcher {
 public:
  // No stop strings at all is legal: everything then passes through.
  // Errors: kInvalidArgument: an empty stop string, more than kStopStringsMax, or one longer than
  // kStopStringBytesMax. The caller adds the field's name.
  static absl::StatusOr<StopMatcher> Create(std::vector<std::string> stop_strings,
                                            bool include_stop_str_in_output = false);

  // The text that may be shown now. After a match: empty, always.
  std::string Append(std::string_view text);

  // The end of the stream without a match: what was held back. Empty after a match.
  std::string Finish();

  // The index of the stop string that was found, if one was.
  std::optional<size_t> matched() const { return matched_; }
  bool stopped() const { return matched_.has_value(); }
  const std::string& stop_string(size_t index) const { return stops_[index].text; }

 private:
  struct Stop {
    std::string text;
    std::vector<uint32_t> borders;  // KMP: length of the longest proper border of each prefix
    uint32_t matched_bytes = 0;
  };

  StopMatcher(std::vector<Stop> stops, bool include_in_output)
      : stops_(std::move(stops)), include_in_output_(include_in_output) {}

  std::vector<Stop> stops_;
  bool include_in_output_;
  std::string held_;
  std::optional<size_t> matched_;
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_DETOKENIZER_STOP_MATCHER_H_

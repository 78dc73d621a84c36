#include "tokenizer/detokenizer/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tessera::tokenizer {

absl::StatusOr<StopMatcher> StopMatcher::Create(std::vector<std::string> stop_strings,
                                                bool include_stop_str_in_output) {
  if (stop_strings.size() > kStopStringsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", stop_strings.size(), " stop strings; give at most ", kStopStringsMax));
  }
  std::vector<Stop> stops;
  for (std::string& text : stop_strings) {
    if (text.empty()) {
      return absl::InvalidArgumentError("has an empty stop string; leave it out");
    }
    if (text.size() > kStopStringBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat("has a stop string of ", text.size(),
                                                     " bytes; give at most ", kStopStringBytesMax));
    }
    Stop stop{.text = std::move(text)};
    stop.borders.assign(stop.text.size() + 1, 0);
    uint32_t border = 0;
    for (size_t i = 1; i < stop.text.size(); ++i) {
      while (border > 0 && stop.text[i] != stop.text[border]) border = stop.borders[border];
      if (stop.text[i] == stop.text[border]) ++border;
      stop.borders[i + 1] = border;
    }
    stops.push_back(std::move(stop));
  }
  return StopMatcher(std::move(stops), include_stop_str_in_output);
}

std::string StopMatcher::Append(std::string_view text) {
  if (stopped()) return {};
  if (stops_.empty()) return std::string(text);
  for (size_t i = 0; i < text.size(); ++i) {
    for (size_t index = 0; index < stops_.size(); ++index) {
      Stop& stop = stops_[index];
      uint32_t& at = stop.matched_bytes;
      while (at > 0 && stop.text[at] != text[i]) at = stop.borders[at];
      if (stop.text[at] == text[i]) ++at;
      const bool found = at == stop.text.size();
      if (found && (!stopped() || stop.text.size() > stops_[*matched_].text.size())) {
        matched_ = index;
      }
    }
    if (stopped()) {
      std::string shown = std::move(held_);
      shown.append(text.substr(0, i + 1));
      if (!include_in_output_) shown.resize(shown.size() - stops_[*matched_].text.size());
      held_.clear();
      return shown;
    }
  }
  uint32_t hold = 0;
  for (const Stop& stop : stops_) hold = std::max(hold, stop.matched_bytes);
  std::string shown = std::move(held_);
  shown.append(text);
  held_ = shown.substr(shown.size() - hold);
  shown.resize(shown.size() - hold);
  return shown;
}

std::string StopMatcher::Finish() {
  std::string rest = std::move(held_);
  held_.clear();
  for (Stop& stop : stops_) stop.matched_bytes = 0;
  return rest;
}

}  // namespace tessera::tokenizer

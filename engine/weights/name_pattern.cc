#include "engine/weights/name_pattern.h"

#include <pcre2.h>

#include <utility>

#include "engine/weights/concat.h"
#include "engine/weights/quantization_config.h"

namespace tessera::engine {

bool WildcardMatches(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;  // the last star seen, and where its run would grow next
  size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

struct NameRegex::Code {
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;
  std::string where;
  std::string pattern;

  ~Code() {
    pcre2_code_free(code);
    pcre2_match_context_free(limits);
  }
};

NameRegex::NameRegex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
NameRegex::NameRegex(NameRegex&&) noexcept = default;
NameRegex& NameRegex::operator=(NameRegex&&) noexcept = default;
NameRegex::~NameRegex() = default;

absl::StatusOr<NameRegex> NameRegex::Compile(std::string_view pattern, std::string where) {
  if (pattern.size() > kPatternBytesMax) {
    return absl::InvalidArgumentError(
        Concat(where, ": pattern of ", pattern.size(), " bytes; the limit is ", kPatternBytesMax));
  }
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto compiled = std::make_unique<Code>();
  compiled->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (compiled->code == nullptr) {
    PCRE2_UCHAR text[128] = {};
    pcre2_get_error_message(error, text, sizeof text);
    return absl::InvalidArgumentError(Concat(where, ": \"", pattern, "\" is not a regular ",
                                             "expression: ", reinterpret_cast<const char*>(text),
                                             " at byte ", offset));
  }
  compiled->limits = pcre2_match_context_create(nullptr);
  if (compiled->limits == nullptr) return absl::ResourceExhaustedError("out of memory");
  pcre2_set_match_limit(compiled->limits, kPatternStepsMax);
  pcre2_set_depth_limit(compiled->limits, 1000);
  pcre2_set_heap_limit(compiled->limits, 1024);  // KiB
  compiled->where = std::move(where);
  compiled->pattern = std::string(pattern);
  return NameRegex(std::move(compiled));
}

absl::StatusOr<bool> NameRegex::Matches(std::string_view text) const {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  if (data == nullptr) return absl::ResourceExhaustedError("out of memory");
  const int result = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                 text.size(), 0, 0, data, code_->limits);
  pcre2_match_data_free(data);
  if (result >= 0) return true;
  if (result == PCRE2_ERROR_NOMATCH) return false;
  return absl::InvalidArgumentError(Concat(code_->where, ": \"", code_->pattern,
                                           "\" took more than ", kPatternStepsMax, " steps on \"",
                                           text, "\"; simplify it"));
}

}  // namespace tessera::engine

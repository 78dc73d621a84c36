#include "tokenizer/vocab/unicode_class.h"

#include <algorithm>
#include <vector>

#include "absl/base/internal/raw_logging.h"

namespace tessera::tokenizer {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
  uint8_t char_class;
  uint8_t is_new;
};

constexpr Range kRanges[] = {
#include "tokenizer/vocab/unicode_class_ranges.inc"
};

}  // namespace

const UnicodeClasses& UnicodeClasses::Get() {
  static const UnicodeClasses* const classes = new UnicodeClasses();
  return *classes;
}

UnicodeClasses::UnicodeClasses() {
  std::vector<uint8_t> flat(0x110000, kOther);
  for (const Range& range : kRanges) {
    std::fill(flat.begin() + range.first, flat.begin() + range.last + 1,
              static_cast<uint8_t>(range.char_class | (range.is_new ? kNew : 0)));
  }
  flat['\r'] = flat['\n'] = kNewline;
  uint16_t count = 0;
  for (uint32_t block = 0; block < block_of_.size(); ++block) {
    const uint8_t* wanted = flat.data() + size_t{block} * kBlock;
    // Most code points lie in runs of equal blocks, so the last ones are the likely match.
    uint16_t found = count;
    while (found > 0 && !std::equal(wanted, wanted + kBlock, &blocks_[(found - 1) * kBlock])) {
      --found;
    }
    if (found == 0) {
      ABSL_RAW_CHECK(count < kBlocksMax, "more distinct blocks of code points than expected");
      std::copy(wanted, wanted + kBlock, &blocks_[size_t{count} * kBlock]);
      found = ++count;
    }
    block_of_[block] = static_cast<uint16_t>(found - 1);
  }
}

}  // namespace tessera::tokenizer

#include "services/parser/formats/fence_tracker.h"

#include <string_view>

#include "gtest/gtest.h"

namespace tessera::parser {
namespace {

bool InFenceAfter(std::string_view text) {
  FenceTracker whole;
  whole.Feed(text);
  FenceTracker bytes;
  for (size_t i = 0; i < text.size(); ++i) bytes.Feed(text.substr(i, 1));
  EXPECT_EQ(whole.in_fence(), bytes.in_fence());
  EXPECT_EQ(whole.at_line_start(), bytes.at_line_start());
  EXPECT_EQ(whole.blank(), bytes.blank());
  return whole.in_fence();
}

TEST(FenceTracker, OpensWithThreeBackticksOrTildesAtTheStartOfALine) {
  EXPECT_TRUE(InFenceAfter("```\n"));
  EXPECT_TRUE(InFenceAfter("text\n~~~~ info\n"));
  EXPECT_TRUE(InFenceAfter("   ```xml\n<a>"));
  EXPECT_FALSE(InFenceAfter("``\n"));
  EXPECT_FALSE(InFenceAfter("text ```\n"));
  EXPECT_FALSE(InFenceAfter("\t```\n"));
}

TEST(FenceTracker, FourSpacesOfIndentAreNoFence) { EXPECT_FALSE(InFenceAfter("    ```\n")); }

TEST(FenceTracker, ABackticksInfoStringHoldsNoBacktick) {
  EXPECT_FALSE(InFenceAfter("```code``` and more\n"));
  EXPECT_TRUE(InFenceAfter("~~~code``` and more\n"));
}

TEST(FenceTracker, IsNotInsideBeforeItsFirstLineEnds) { EXPECT_FALSE(InFenceAfter("```xml")); }

TEST(FenceTracker, ClosesWithAsManyOfTheSame) {
  EXPECT_FALSE(InFenceAfter("```\ncode\n```\n"));
  EXPECT_FALSE(InFenceAfter("```\ncode\n`````  \r\n"));
  EXPECT_TRUE(InFenceAfter("````\ncode\n```\n"));
  EXPECT_TRUE(InFenceAfter("```\ncode\n~~~\n"));
  EXPECT_TRUE(InFenceAfter("```\ncode\n``` x\n"));
  EXPECT_TRUE(InFenceAfter("```\ncode\n    ```\n"));
}

TEST(FenceTracker, KnowsTheStartOfALineAndOfTheChannel) {
  FenceTracker place;
  EXPECT_TRUE(place.at_line_start());
  EXPECT_TRUE(place.blank());
  place.Feed(" \t");
  EXPECT_FALSE(place.at_line_start());
  EXPECT_TRUE(place.blank());
  place.Feed("x");
  EXPECT_FALSE(place.blank());
  place.Feed("\n");
  EXPECT_TRUE(place.at_line_start());
}

TEST(FenceTracker, StandsRightAfterACallUntilTextComes) {
  FenceTracker place;
  place.Feed("```\n");
  place.AfterCall();
  EXPECT_FALSE(place.in_fence());
  EXPECT_TRUE(place.at_line_start());
  place.Feed("  \n    ");
  EXPECT_TRUE(place.right_after_call());
  place.Feed("x");
  EXPECT_FALSE(place.right_after_call());
}

}  // namespace
}  // namespace tessera::parser

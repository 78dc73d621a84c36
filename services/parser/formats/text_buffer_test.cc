#include "services/parser/formats/text_buffer.h"

#include <string>

#include "gtest/gtest.h"

namespace tessera::parser {
namespace {

std::string Intake(std::initializer_list<std::string_view> pieces, uint64_t* replaced = nullptr) {
  Utf8Intake intake;
  TextBuffer buffer;
  uint64_t count = 0;
  for (const std::string_view piece : pieces) count += intake.Append(piece, &buffer);
  count += intake.Finish(&buffer);
  if (replaced != nullptr) *replaced = count;
  return std::string(buffer.Rest());
}

TEST(Utf8Intake, PutsCodePointsTogetherThatAPieceCutApart) {
  EXPECT_EQ(Intake({"na\xC3", "\xAFve \xF0\x9F", "\x90", "\x88!"}), "naïve 🐈!");
}

TEST(Utf8Intake, ReplacesWhatIsNotUtf8WhereverItIsCut) {
  const std::string bad =
      std::string("a\xFF") + "b\xC3(\xED\xA0\x80\xF0\x9F\x90 \xC0\xAF c\xE2\x82";
  uint64_t replaced = 0;
  const std::string whole = Intake({bad}, &replaced);
  EXPECT_GT(replaced, 5u);
  for (size_t i = 1; i < bad.size(); ++i) {
    for (size_t j = i; j < bad.size(); ++j) {
      EXPECT_EQ(Intake({std::string_view(bad).substr(0, i), std::string_view(bad).substr(i, j - i),
                        std::string_view(bad).substr(j)}),
                whole);
    }
  }
}

TEST(Utf8Intake, ReplacesAnIncompleteSequenceAtTheEnd) {
  EXPECT_EQ(Intake({"x\xE2\x82"}), "x\xEF\xBF\xBD");
}

TEST(MatchTag, TellsAPrefixFromAMismatch) {
  EXPECT_EQ(MatchTag("<tool", "<tool_call>"), Match::kPartial);
  EXPECT_EQ(MatchTag("", "<tool_call>"), Match::kPartial);
  EXPECT_EQ(MatchTag("<tool_call> x", "<tool_call>"), Match::kFull);
  EXPECT_EQ(MatchTag("<tools_", "<tool_call>"), Match::kNo);
}

TEST(TextBuffer, KeepsOffsetsWhileTextIsTaken) {
  TextBuffer buffer;
  for (int i = 0; i < 10000; ++i) {
    buffer.Append("0123456789");
    buffer.Consume(i % 2 == 0 ? 9 : 10);
  }
  EXPECT_EQ(buffer.end(), 100000u);
  EXPECT_EQ(buffer.begin(), 95000u);
  EXPECT_EQ(buffer.Rest().size(), 5000u);
  EXPECT_EQ(buffer.Rest().front(), '0');
}

TEST(TextBuffer, GoesOnWithAScanWhenMoreTextHasCome) {
  TextBuffer buffer;
  buffer.Append("a  ");
  EXPECT_EQ(buffer.SkipSpace(1), 3u);
  buffer.Append("\t\t x");
  EXPECT_EQ(buffer.SkipSpace(1), 6u);
  EXPECT_EQ(buffer.SkipSpace(0), 0u);
  EXPECT_EQ(buffer.NameEnd(0), 7u);
  buffer.Append("yz>");
  EXPECT_EQ(buffer.NameEnd(0), 9u);
}

TEST(TextBuffer, ANewlineEndsAName) {
  TextBuffer buffer;
  buffer.Append("name\n>");
  EXPECT_EQ(buffer.NameEnd(0), 4u);
}

TEST(TextBuffer, SkipsChainsOfTagsFromAnyTagOfThem) {
  TextBuffer buffer;
  buffer.Append("</p> </p></");
  EXPECT_EQ(buffer.SkipSpaceAndTags(0, "</p>"), 9u);
  EXPECT_EQ(buffer.SkipSpaceAndTags(4, "</p>"), 9u);
  buffer.Append("p>x");
  EXPECT_EQ(buffer.SkipSpaceAndTags(4, "</p>"), 13u);
}

}  // namespace
}  // namespace tessera::parser

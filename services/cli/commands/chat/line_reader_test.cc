#include "services/cli/commands/chat/line_reader.h"

#include <unistd.h>

#include <string_view>

#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

class LineReaderTest : public testing::Test {
 protected:
  LineReaderTest() {
    EXPECT_EQ(pipe(input_), 0);
    EXPECT_EQ(pipe(interrupt_), 0);
  }
  ~LineReaderTest() override {
    close(input_[0]);
    CloseInput();
    close(interrupt_[0]);
    close(interrupt_[1]);
  }
  void Type(std::string_view text) {
    ASSERT_EQ(write(input_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void CloseInput() {
    if (input_[1] >= 0) close(input_[1]);
    input_[1] = -1;
  }

  int input_[2];
  int interrupt_[2];
  std::string line_ = "untouched";
};

TEST_F(LineReaderTest, GivesLinesThenTheEnd) {
  Type("a b\n\nc\r\nlast");
  CloseInput();
  LineReader reader(input_[0], -1);
  for (const char* expected : {"a b", "", "c", "last"}) {
    ASSERT_EQ(reader.Read(line_), LineEvent::kLine);
    EXPECT_EQ(line_, expected);
  }
  EXPECT_EQ(reader.Read(line_), LineEvent::kEnd);
  EXPECT_EQ(reader.Read(line_), LineEvent::kEnd);
}

TEST_F(LineReaderTest, AnInterruptDropsTheUnfinishedLine) {
  LineReader reader(input_[0], interrupt_[0]);
  ASSERT_EQ(write(interrupt_[1], "x", 1), 1);
  EXPECT_EQ(reader.Read(line_), LineEvent::kInterrupted);
  EXPECT_EQ(line_, "untouched");
  char byte = 0;
  ASSERT_EQ(read(interrupt_[0], &byte, 1), 1);  // it was left for the caller
  Type("next\n");
  EXPECT_EQ(reader.Read(line_), LineEvent::kLine);
  EXPECT_EQ(line_, "next");
}

}  // namespace
}  // namespace tessera::cli

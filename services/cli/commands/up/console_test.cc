#include "services/cli/commands/up/console.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

std::string Drain(int fd) {
  std::string text;
  char buffer[4096];
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  for (ssize_t bytes; (bytes = ::read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(bytes));
  }
  return text;
}

TEST(Console, LinesThatNobodyReadsAreDroppedCountedAndNeverWaitedFor) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Console console(ends[1]);
  const std::string text(1000, 'x');
  for (int i = 0; i < 200; ++i) console.Say("engine", text);  // a pipe holds 64 KiB
  const std::string first = Drain(ends[0]);
  EXPECT_THAT(first, testing::StartsWith("engine: xxx"));
  console.Say("engine", "hello");
  EXPECT_THAT(Drain(ends[0]), testing::MatchesRegex(".*lines were dropped: nobody read them\\)\n"
                                                    "engine: hello\n"));
  // Whoever shares the pipe finds it as it was.
  EXPECT_EQ(::fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Console, AFileIsWrittenWhereItsOwnerStands) {
  char path[] = "/tmp/console_test_XXXXXX";
  const int fd = ::mkstemp(path);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::write(fd, "before\n", 7), 7);
  Console(fd).Say("up", "after");
  char buffer[64] = {};
  ASSERT_EQ(::pread(fd, buffer, sizeof buffer, 0), 17);
  EXPECT_STREQ(buffer, "before\nup: after\n");
  ::close(fd);
  ::unlink(path);
}

}  // namespace
}  // namespace tessera::cli

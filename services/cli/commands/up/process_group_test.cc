#include "services/cli/commands/up/process_group.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/cli/commands/up/child_process.h"
#include "services/common/clock.h"

namespace tessera::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr absl::Duration kHangs = absl::Seconds(20);

// Says "up" when SIGTERM is caught, and its name when it has come.
std::string Polite(const std::string& name) {
  return absl::StrCat("trap 'echo ", name, " ends; exit 0' TERM; echo up; ",
                      "while :; do sleep 0.01; done");
}
constexpr char kDeaf[] = "trap '' TERM; echo up; while :; do sleep 0.01; done";

// Runs shell scripts as a group, and writes down what it hears, in order.
class Fixture : public testing::Test, public GroupObserver {
 protected:
  Fixture() : loop_(services::RealClock()) {
    loop_.After(kHangs, [this] {
      ADD_FAILURE() << "hangs";
      loop_.Quit(-1);
    });
  }

  void Make(const std::vector<std::string>& scripts, const GroupOptions& options = {}) {
    std::vector<ChildSpec> specs;
    for (size_t i = 0; i < scripts.size(); ++i) {
      specs.push_back({.name = std::string(1, static_cast<char>('a' + i)),
                       .program = "/bin/sh",
                       .arguments = {"-c", scripts[i]},
                       .log_path = i == 0 ? log_path_ : ""});
    }
    group_.emplace(loop_, std::move(specs), options, *this);
  }
  // Starts, and calls `then` when every child has said "up".
  void StartThen(std::function<void()> then) {
    all_up_ = std::move(then);
    const absl::Status status = group_->Start();
    ASSERT_TRUE(status.ok()) << status;
    loop_.Run();
  }

  void OnLine(size_t child, std::string_view line) override {
    if (line == "up") {
      if (++ups_ == group_->size() && all_up_) all_up_();
      if (on_up_) on_up_(child);
      return;
    }
    heard_.emplace_back(line);
  }
  void OnStartFailed(size_t child, int wait_status) override {
    heard_.push_back(absl::StrCat("start of ", child, " failed: ", EndWords(wait_status)));
    group_->Stop();
  }
  void OnDied(size_t child, int wait_status, const RestartDecision& decision) override {
    heard_.push_back(absl::StrCat(group_->spec(child).name, " ", EndWords(wait_status)));
    decisions_.push_back(decision);
    if (decision.give_up) group_->Stop();
    if (on_died_) on_died_(child);
  }
  void OnRestarted(size_t) override { heard_.push_back("restarted"); }
  void OnKilled(size_t child) override {
    heard_.push_back(absl::StrCat(group_->spec(child).name, " killed"));
  }
  void OnStopped() override {
    heard_.push_back("stopped");
    loop_.Quit(0);
  }

  std::string log_path_;
  EventLoop loop_;
  std::optional<ProcessGroup> group_;
  std::function<void()> all_up_;
  std::function<void(size_t)> on_up_;
  std::function<void(size_t)> on_died_;
  size_t ups_ = 0;
  std::vector<std::string> heard_;
  std::vector<RestartDecision> decisions_;
};

using ProcessGroupTest = Fixture;

TEST_F(ProcessGroupTest, StopsTheLastChildFirstAndWaitsForEach) {
  Make({Polite("a"), Polite("b"), Polite("c")});
  StartThen([this] {
    group_->MarkStarted();
    group_->Stop();
  });
  EXPECT_THAT(heard_, ElementsAre("c ends", "b ends", "a ends", "stopped"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a zombie is left";
}

TEST_F(ProcessGroupTest, KillsAChildThatIgnoresSigterm) {
  Make({Polite("a"), kDeaf}, {.stop_max = absl::Milliseconds(100)});
  StartThen([this] { group_->Stop(); });
  EXPECT_THAT(heard_, ElementsAre("b killed", "a ends", "stopped"));
}

TEST_F(ProcessGroupTest, KillEndsEveryoneAtOnce) {
  Make({kDeaf, kDeaf});
  StartThen([this] {
    group_->Stop();
    group_->Kill();
  });
  EXPECT_THAT(heard_, ElementsAre("stopped"));
  EXPECT_FALSE(group_->running(0));
  EXPECT_FALSE(group_->running(1));
}

TEST_F(ProcessGroupTest, AChildThatDiesIsNamedAndStartedAgain) {
  Make({Polite("a"), Polite("b")}, {.restart = {.delay_min = absl::Milliseconds(1)}});
  pid_t first = 0;
  StartThen([&] {
    group_->MarkStarted();
    first = group_->pid(1);
    on_up_ = [&](size_t child) {
      if (ups_ <= 2) return;
      EXPECT_EQ(child, 1u);
      EXPECT_NE(group_->pid(1), first);
      group_->Stop();
    };
    ::kill(first, SIGKILL);
  });
  EXPECT_THAT(heard_,
              ElementsAre("b died: signal 9 (Killed)", "restarted", "b ends", "a ends", "stopped"));
}

TEST_F(ProcessGroupTest, GivesUpAfterTheLimitOfQuickFailures) {
  // The first life, which must succeed, is told from the later ones by a file.
  const std::string once = testing::TempDir() + "/once";
  ::unlink(once.c_str());
  Make({absl::StrCat("test -e ", once, " && exit 3; touch ", once,
                     "; echo up; while :; do sleep 0.01; done")},
       {.restart = {.delay_min = absl::Milliseconds(1),
                    .delay_max = absl::Milliseconds(4),
                    .quick_failures_max = 4}});
  StartThen([this] {
    group_->MarkStarted();
    ::kill(group_->pid(0), SIGTERM);
  });
  EXPECT_THAT(heard_, ElementsAre("a died: signal 15 (Terminated)", "restarted",
                                  "a exited with status 3", "restarted", "a exited with status 3",
                                  "restarted", "a exited with status 3", "stopped"));
  ASSERT_EQ(decisions_.size(), 4u);
  EXPECT_FALSE(decisions_[2].give_up);
  EXPECT_TRUE(decisions_[3].give_up);
}

TEST_F(ProcessGroupTest, AChildThatServedWellStartsThePausesOver) {
  const RestartLimits limits = {.delay_min = absl::Milliseconds(1),
                                .served_well = absl::ZeroDuration(),
                                .quick_failures_max = 2};
  Make({Polite("a")}, {.restart = limits});
  StartThen([this] {
    group_->MarkStarted();
    on_up_ = [this](size_t) {
      group_->SetServing(0, true);
      if (ups_ == 5) return group_->Stop();
      ::kill(group_->pid(0), SIGKILL);
    };
  });
  ASSERT_EQ(decisions_.size(), 4u);
  for (const RestartDecision& decision : decisions_) EXPECT_EQ(decision.quick_failures, 1);
}

TEST_F(ProcessGroupTest, AChildThatFailsAtFirstIsNotStartedAgainAndItsLastWordsAreHeard) {
  Make({Polite("a"), "echo up; printf 'no such model' >&2; exit 2"});
  StartThen(nullptr);
  EXPECT_THAT(heard_, testing::Contains("no such model"));
  EXPECT_THAT(heard_, testing::Contains("start of 1 failed: exited with status 2"));
  EXPECT_EQ(heard_.back(), "stopped");
}

TEST_F(ProcessGroupTest, AProgramThatIsNotThereIsNamedAndNothingIsLeft) {
  std::vector<ChildSpec> specs = {{.name = "a", .program = "/bin/sh", .arguments = {"-c", kDeaf}},
                                  {.name = "b", .program = "/no/such/program"}};
  group_.emplace(loop_, specs, GroupOptions{}, *this);
  const absl::Status status = group_->Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/program"));
  EXPECT_FALSE(group_->running(0));
}

TEST_F(ProcessGroupTest, OutputIsAppendedToTheLogFileAcrossLives) {
  log_path_ = testing::TempDir() + "/a.log";
  std::ofstream(log_path_) << "before\n";
  Make({"echo up; echo out; echo err >&2; while :; do sleep 0.01; done"},
       {.restart = {.delay_min = absl::Milliseconds(1)}});
  StartThen([this] {
    group_->MarkStarted();
    on_up_ = [this](size_t) {
      if (ups_ == 2) group_->Stop();
    };
    ::kill(group_->pid(0), SIGKILL);
  });
  std::stringstream text;
  text << std::ifstream(log_path_).rdbuf();
  EXPECT_THAT(text.str(), testing::StartsWith("before\nup\n"));
  EXPECT_EQ(ups_, 2u);
}

TEST_F(ProcessGroupTest, ALineWithoutEndIsCut) {
  Make({"echo up; head -c 200000 /dev/zero | tr '\\0' x; while :; do sleep 0.01; done"});
  StartThen([this] { loop_.After(absl::Milliseconds(300), [this] { group_->Stop(); }); });
  ASSERT_GE(heard_.size(), 4u);
  EXPECT_EQ(heard_[0].size(), kLineBytesMax);
}

TEST_F(ProcessGroupTest, OrphansOfAKilledChildAreReaped) {
  // The grandchild outlives its parent by a moment and becomes ours.
  Make({"(sleep 0.2) & echo up; while :; do sleep 0.01; done"});
  StartThen([this] { group_->Kill(); });
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(ProcessGroupTest, AChildHasItsOwnGroupDefaultSignalsAndNoForeignDescriptors) {
  ::signal(SIGPIPE, SIG_IGN);
  const int leaked = ::dup(STDIN_FILENO);
  Make(
      {"ps -o pgid= -p $$ | tr -d ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status; "
       "ls /proc/self/fd; echo up; while :; do sleep 0.01; done"});
  pid_t pid = 0;
  StartThen([&] {
    pid = group_->pid(0);
    group_->Kill();
  });
  ::close(leaked);
  // Of the ignored signals the first 24: glibc keeps 32 and 33 to itself, and whoever runs the test
  // may have them ignored. Descriptor 3 is what ls itself reads the folder with.
  EXPECT_THAT(heard_, ElementsAre(absl::StrCat(pid), HasSubstr("SigBlk:\t0000000000000000"),
                                  testing::EndsWith("000000"), "0", "1", "2", "3", "stopped"));
}

// kill -9 of the supervisor leaves nothing running.
TEST(SpawnChild, TheChildDiesWithItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const absl::StatusOr<pid_t> pid = SpawnChild("/bin/sleep", {"1000"}, STDERR_FILENO);
    const pid_t number = pid.ok() ? *pid : -1;
    (void)!::write(ends[1], &number, sizeof number);
    for (;;) ::pause();
  }
  pid_t child = -1;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ASSERT_GT(child, 0);
  const int child_fd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  ASSERT_GE(child_fd, 0);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  pollfd ended = {.fd = child_fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ended, 1, 5000), 1) << "the child lives on";
  ::close(child_fd);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace tessera::cli

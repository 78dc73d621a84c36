#include "services/cli/commands/up/chain_session.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "services/cli/commands/up/child_process.h"
#include "services/common/server_options.h"

namespace tessera::cli {
namespace {

sigset_t StopSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  // nohup has it ignored, and means it.
  struct sigaction hang_up = {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) ::sigaddset(&signals, SIGHUP);
  return signals;
}

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
}

}  // namespace

ChainSession::ChainSession(std::vector<ChildSpec> specs, Parts parts)
    : parts_(std::move(parts)),
      group_(parts_.loop, std::move(specs),
             {.restart = parts_.restart, .stop_max = parts_.drain_max + kStopGrace}, *this),
      serving_(group_.size()),
      was_serving_(group_.size()) {}

ChainSession::~ChainSession() {
  parts_.loop.Cancel(progress_timer_);
  if (signal_fd_ < 0) return;
  parts_.loop.Unwatch(signal_fd_);
  ::close(signal_fd_);
}

int ChainSession::Run() {
  const sigset_t signals = StopSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signal_fd_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  parts_.loop.Watch(signal_fd_, POLLIN, [this] { OnSignal(); });
  begin_ = parts_.loop.Now();
  absl::Status status = group_.Start();
  if (status.ok()) status = WatchHealth();
  if (!status.ok()) {
    Say(std::string(status.message()));
    return services::kExitFailure;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < group_.size(); ++i) names.push_back(name(i));
  Say(absl::StrCat("starting ", absl::StrJoin(names, ", ")));
  progress_timer_ = parts_.loop.After(kProgressInterval, [this] { OnProgress(); });
  return parts_.loop.Run();
}

absl::Status ChainSession::WatchHealth() {
  board_.emplace(parts_.loop, [this](size_t child, bool serving) { OnHealth(child, serving); });
  const ChainPorts& ports = parts_.ports;
  absl::Status status =
      board_->Watch(kEngine, ports.engine.client_address(), "tessera.engine.v1.EngineService");
  status.Update(board_->Watch(kTokenizer, ports.tokenizer.client_address(),
                              "tessera.tokenizer.v1.TokenizerService"));
  status.Update(
      board_->Watch(kParser, ports.parser.client_address(), "tessera.parser.v1.ParserService"));
  if (ports.gateway) {
    probe_.emplace(parts_.loop, ports.gateway->client_address(),
                   [this] { OnHealth(kGateway, true); });
  }
  return status;
}

void ChainSession::OnHealth(size_t child, bool serving) {
  if (serving && !group_.running(child)) return;  // said before it died
  group_.SetServing(child, serving);
  serving_[child] = serving;
  if (serving && !started_ && !was_serving_[child]) {
    Say(absl::StrCat(name(child), " ready after ", Elapsed(begin_)));
  }
  was_serving_[child] = was_serving_[child] || serving;
  if (!serving) LostService();
  CheckServing();
}

void ChainSession::LostService() {
  // The gateway says no more than 503 now; it must be asked again.
  if (probe_) {
    serving_[kGateway] = false;
    probe_->Stop();
  }
  if (!ready_) return;
  ready_ = false;
  lost_at_ = parts_.loop.Now();
}

void ChainSession::CheckServing() {
  if (ready_ || stopping_) return;
  for (size_t i = 0; i < group_.size(); ++i) {
    if (!group_.running(i)) return;
    if (i != kGateway && !serving_[i]) return;
  }
  if (probe_ && !serving_[kGateway]) {
    probe_->Start();
    return;
  }
  OnServing();
}

void ChainSession::OnServing() {
  ready_ = true;
  if (started_) {
    Say(absl::StrCat("serving again after ", Elapsed(lost_at_)));
    return;
  }
  started_ = true;
  group_.MarkStarted();
  parts_.loop.Cancel(std::exchange(progress_timer_, 0));
  ShowHeldLines();
  Say(absl::StrCat("ready after ", Elapsed(begin_)));
  parts_.on_ready();
}

void ChainSession::OnProgress() {
  std::vector<std::string> missing;
  for (size_t i = 0; i < group_.size(); ++i) {
    if (!serving_[i]) missing.push_back(name(i));
  }
  ShowHeldLines();
  Say(absl::StrCat("waiting for ", absl::StrJoin(missing, ", "), " (", Elapsed(begin_), ")"));
  progress_timer_ = parts_.loop.After(kProgressInterval, [this] { OnProgress(); });
}

void ChainSession::OnSignal() {
  signalfd_siginfo info = {};
  if (::read(signal_fd_, &info, sizeof info) != sizeof info) return;
  parts_.loop.Cancel(std::exchange(progress_timer_, 0));
  if (probe_) probe_->Stop();
  if (stopping_) {
    Say("second signal: everything is killed");
    exit_status_ = services::kExitFailure;
    group_.Kill();
    return;
  }
  Say(absl::StrCat("stopping (", sigdescr_np(static_cast<int>(info.ssi_signo)),
                   "); running streams may end for ", Seconds(parts_.drain_max),
                   ", a second signal cuts them"));
  stopping_ = true;
  group_.Stop();
}

void ChainSession::OnLine(size_t child, std::string_view text) {
  if (text.empty() || failed_) return;
  OutputLine line = ReadOutputLine(name(child), text);
  const bool wanted = line.level == LineLevel::kPlain || line.level == LineLevel::kError ||
                      (line.level == LineLevel::kWarning && !line.from_grpc);
  if (parts_.verbose || (wanted && started_)) {
    Show(line);
  } else if (wanted && held_.size() < kHeldLinesMax) {
    held_.push_back({child, std::move(line)});
  }
}

void ChainSession::Show(const OutputLine& line) {
  std::string text(LevelPrefix(line.level));
  text += line.text;
  parts_.console.Say(line.source, text);
}

void ChainSession::ShowHeldLines() {
  for (const HeldLine& held : std::exchange(held_, {})) Show(held.line);
}

// Removes from the lines held back the one that says best why `child` ended: what it said as a
// process ("tessera-engine: ..."), else its last error, else the last thing that it wrote.
std::string ChainSession::TakeReason(size_t child) {
  int best = -1;
  int best_rank = -1;
  for (size_t i = 0; i < held_.size(); ++i) {
    if (held_[i].child != child) continue;
    const OutputLine& line = held_[i].line;
    const int rank = line.own_words                    ? 3
                     : line.level == LineLevel::kError ? 2
                     : line.level == LineLevel::kPlain ? 1
                                                       : 0;
    if (rank < best_rank) continue;
    best = static_cast<int>(i);
    best_rank = rank;
  }
  if (best < 0) return "";
  const std::string reason = held_[static_cast<size_t>(best)].line.text;
  held_.erase(held_.begin() + best);
  return reason;
}

void ChainSession::OnStartFailed(size_t child, int wait_status) {
  if (failed_) return;
  const std::string reason = TakeReason(child);
  held_.erase(std::remove_if(held_.begin(), held_.end(),
                             [child](const HeldLine& held) { return held.child != child; }),
              held_.end());
  ShowHeldLines();
  Say(absl::StrCat(name(child), " ", EndWords(wait_status), reason.empty() ? "" : ": ", reason));
  failed_ = true;
  stopping_ = true;
  const bool bad_flags =
      WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == services::kExitBadFlags;
  exit_status_ = bad_flags ? services::kExitBadFlags : services::kExitFailure;
  parts_.loop.Cancel(std::exchange(progress_timer_, 0));
  if (probe_) probe_->Stop();
  group_.Stop();
}

void ChainSession::OnDied(size_t child, int wait_status, const RestartDecision& decision) {
  serving_[child] = false;
  LostService();
  if (!decision.give_up) {
    Say(absl::StrCat(name(child), " ", EndWords(wait_status), "; restarting in ",
                     absl::ToInt64Milliseconds(decision.delay), " ms"));
    return;
  }
  Say(absl::StrCat(name(child), " ", EndWords(wait_status), "; ", decision.quick_failures,
                   " failures in a row: giving up and stopping everything"));
  exit_status_ = services::kExitFailure;
  stopping_ = true;
  group_.Stop();
}

void ChainSession::OnRestarted(size_t child) {
  if (parts_.verbose) Say(absl::StrCat(name(child), " restarted, pid ", group_.pid(child)));
  CheckServing();
}

void ChainSession::OnKilled(size_t child) {
  Say(absl::StrCat(name(child), " did not stop within ", Seconds(parts_.drain_max + kStopGrace),
                   " and was killed"));
}

void ChainSession::OnStopped() {
  if (!failed_) Say("stopped");
  board_.reset();
  parts_.loop.Quit(exit_status_);
}

std::string ChainSession::Elapsed(absl::Duration since) const {
  return Seconds(parts_.loop.Now() - since);
}

}  // namespace tessera::cli

#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_CHAIN_SESSION_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_CHAIN_SESSION_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/cli/commands/up/chain_plan.h"
#include "services/cli/commands/up/console.h"
#include "services/cli/commands/up/event_loop.h"
#include "services/cli/commands/up/health_board.h"
#include "services/cli/commands/up/http_probe.h"
#include "services/cli/commands/up/output_line.h"
#include "services/cli/commands/up/process_group.h"

namespace tessera::cli {

// While the chain starts, the user hears this often what it waits for.
inline constexpr absl::Duration kProgressInterval = absl::Seconds(5);
// Warnings and errors that are kept back while the chain starts: if it fails, one of them is why.
inline constexpr size_t kHeldLinesMax = 200;
// A child may take this much longer to stop than its streams may go on.
inline constexpr absl::Duration kStopGrace = absl::Seconds(5);

// One run of the chain from start to stop: supervises its processes, follows their health, obeys
// SIGTERM, SIGINT and SIGHUP, and tells the user what happens.
//
// Ownership: borrows all parts.  Threading: one thread; make it before any other thread, since it
// blocks those signals.
class ChainSession final : public GroupObserver {
 public:
  struct Parts {
    EventLoop& loop;
    Console& console;
    const ChainPorts& ports;
    bool verbose = false;  // shows children's info lines too
    absl::Duration drain_max;
    RestartLimits restart;
    std::function<void()> on_ready;  // once, when the whole chain first serves
  };
  ChainSession(std::vector<ChildSpec> specs, Parts parts);
  ~ChainSession() override;

  // Returns the exit status: 0 after a signal, 1 when the chain could not start or go on or was
  // killed, 2 when a child refused its flags.
  int Run();

  void OnLine(size_t child, std::string_view line) override;
  void OnStartFailed(size_t child, int wait_status) override;
  void OnDied(size_t child, int wait_status, const RestartDecision& decision) override;
  void OnRestarted(size_t child) override;
  void OnKilled(size_t child) override;
  void OnStopped() override;

 private:
  struct HeldLine {
    size_t child;
    OutputLine line;
  };

  absl::Status WatchHealth();
  void OnHealth(size_t child, bool serving);
  void OnSignal();
  void OnProgress();
  // Says the chain serves if it does; asks the gateway if the rest does.
  void CheckServing();
  void OnServing();
  void LostService();
  void Say(std::string_view text) { parts_.console.Say("tessera up", text); }
  void Show(const OutputLine& line);
  void ShowHeldLines();
  std::string TakeReason(size_t child);
  std::string Elapsed(absl::Duration since) const;
  const std::string& name(size_t child) const { return group_.spec(child).name; }

  const Parts parts_;
  ProcessGroup group_;
  std::optional<HealthBoard> board_;
  std::optional<HttpProbe> probe_;
  std::vector<bool> serving_;
  std::vector<bool> was_serving_;
  std::vector<HeldLine> held_;
  absl::Duration begin_;
  absl::Duration lost_at_;
  bool started_ = false;   // has served once
  bool ready_ = false;     // serves now
  bool failed_ = false;    // stops because of a failure, which was said
  bool stopping_ = false;  // was told to stop, or has failed
  int exit_status_ = 0;
  int signal_fd_ = -1;
  EventLoop::TimerId progress_timer_ = 0;
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_CHAIN_SESSION_H_

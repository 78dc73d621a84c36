#include "engine/worker/worker_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/synchronization/mutex.h"
#include "engine/core/clock.h"
#include "engine/ipc/worker_server.h"
#include "engine/worker/step_runner.h"

namespace tessera::engine {
namespace {

constexpr int kThreadsMax = 1024;

struct WorkerOptions {
  std::string socket;
  std::string device;
  int threads = 0;
  int parent = 0;  // the process that must be our parent; 0: whoever it is
};

class SteadyClock final : public Clock {
 public:
  uint64_t NowUs() const override {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
  }
};

// A line as the other processes log it. A worker may not depend on services, and has little to say.
void LogLine(const char* level, const std::string& message) {
  char time[64];
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc;
  gmtime_r(&now, &utc);
  std::strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ", &utc);
  const nlohmann::ordered_json line = {
      {"ts", time}, {"level", level}, {"service", "worker"}, {"msg", message}};
  std::cerr << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

class Handler final : public WorkerHandler {
 public:
  Handler(const WorkerOptions& options, const ModelLoader& loader)
      : options_(options), loader_(loader) {}

  absl::Status Load(const WorkerLoad& load,
                    const std::function<void(const WorkerProgress&)>& progress,
                    std::vector<std::string>& warnings) override {
    if (load.world_size != 1) {
      return absl::UnimplementedError("--workers: more than one worker is not built yet; give 1");
    }
    const ModelLimits limits = {.slots = load.slots,
                                .blocks = load.blocks,
                                .block_tokens = load.block_tokens,
                                .step_tokens_max = load.step_tokens_max,
                                .logit_rows_max = load.slots,
                                .threads = options_.threads};
    absl::StatusOr<std::unique_ptr<Model>> model = loader_(
        load.model_path, limits,
        [&](const char* phase, uint64_t done, uint64_t total) {
          progress({.phase = phase, .bytes_done = done, .bytes_total = total});
        },
        &warnings);
    if (!model.ok()) return model.status();
    model_ = *std::move(model);
    runner_ = std::make_unique<StepRunner>(*model_, clock_);
    return absl::OkStatus();
  }

  absl::StatusOr<StepResult> Execute(const StepPlan& plan) override { return runner_->Run(plan); }

 private:
  const WorkerOptions& options_;
  const ModelLoader& loader_;
  SteadyClock clock_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<StepRunner> runner_;
};

}  // namespace

int RunWorkerProcess(int argc, char** argv, const std::string& device, const ModelLoader& loader) {
  WorkerOptions options = {.device = device};
  CLI::App app("Tessera worker: runs the model on one device for one engine", "tessera-worker");
  app.set_version_flag("--version", "tessera-worker 0.1.0");
  app.add_option("--socket", options.socket, "Unix socket to serve the engine on")->required();
  app.add_option("--device", options.device, "device of this worker")
      ->check(CLI::IsMember({device}))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "compute threads; 0: one a core")
      ->check(CLI::Range(0, kThreadsMax))
      ->capture_default_str();
  app.add_option("--parent", options.parent, "process id of the engine; exits if it has gone");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "tessera-worker: " << error.what() << " (--help lists the flags)\n";
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  // Debian's Abseil checks every lock for deadlocks under a global lock unless told not to.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // The signal comes for a parent that ends from now on; one that has ended shows in getppid.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (options.parent != 0 && ::getppid() != options.parent) {
    LogLine("error", "the engine has gone before this worker began");
    return 1;
  }
  Handler handler(options, loader);
  absl::StatusOr<std::unique_ptr<WorkerServer>> server =
      WorkerServer::Start(options.socket, handler);
  if (!server.ok()) {
    std::cerr << "tessera-worker: " << server.status().message() << "\n";
    return server.status().code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
  }
  const absl::Status done = (*server)->Wait();
  server->reset();
  ::unlink(options.socket.c_str());
  if (done.ok()) return 0;
  LogLine("error", "the worker ends: " + done.ToString());
  return 1;
}

}  // namespace tessera::engine

#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_HEALTH_BOARD_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_HEALTH_BOARD_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "services/cli/commands/up/event_loop.h"
#include "services/clients/health_watch.h"

namespace tessera::cli {

// Brings what gRPC servers say of their health (grpc.health.v1 Watch, from gRPC's threads) to the
// loop's thread. A server that dies says "not serving" by that, and is found again by itself.
// Ownership: borrows the loop.  Threading: the loop's thread.
class HealthBoard final {
 public:
  // Called from the loop at each change, with the index given to Watch.
  using Changed = std::function<void(size_t server, bool serving)>;

  HealthBoard(EventLoop& loop, Changed changed);
  ~HealthBoard();
  HealthBoard(const HealthBoard&) = delete;
  HealthBoard& operator=(const HealthBoard&) = delete;

  // Follows `service` at `address`. Errors: those of services::MakeChannel.
  absl::Status Watch(size_t server, const std::string& address, const std::string& service);

 private:
  void Post(size_t server, bool serving);
  void Deliver();

  EventLoop& loop_;
  const Changed changed_;
  int wake_fd_ = -1;
  absl::Mutex mutex_;
  std::vector<std::pair<size_t, bool>> news_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<services::HealthWatch>> watches_;
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_HEALTH_BOARD_H_

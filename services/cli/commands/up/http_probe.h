#ifndef TESSERA_SERVICES_CLI_COMMANDS_UP_HTTP_PROBE_H_
#define TESSERA_SERVICES_CLI_COMMANDS_UP_HTTP_PROBE_H_

#include <sys/socket.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/cli/commands/up/event_loop.h"

namespace tessera::cli {

// Between two questions; HTTP has no way to wait for a change of health.
inline constexpr absl::Duration kProbeInterval = absl::Milliseconds(20);
// One question may take this long.
inline constexpr absl::Duration kProbeMax = absl::Seconds(1);

// Asks an HTTP server `GET /health`, again and again, until it answers 200.
// Ownership: borrows the loop.  Threading: the loop's thread.
class HttpProbe final {
 public:
  // `address` is HOST:PORT; the host is looked up when first asked. `healthy` is called from the
  // loop, once for each Start.
  HttpProbe(EventLoop& loop, std::string address, std::function<void()> healthy);
  ~HttpProbe();
  HttpProbe(const HttpProbe&) = delete;
  HttpProbe& operator=(const HttpProbe&) = delete;

  // Begins to ask; no effect while it is asking.
  void Start();
  void Stop();

 private:
  bool Resolve();
  void Ask();
  void OnReady();
  void AskLater();
  void CloseSocket();

  EventLoop& loop_;
  const std::string address_;
  const std::function<void()> healthy_;
  sockaddr_storage to_ = {};
  socklen_t to_bytes_ = 0;
  int fd_ = -1;
  bool asked_ = false;  // the request is sent
  std::string answer_;
  EventLoop::TimerId timer_ = 0;  // the next question's, or this one's limit
};

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_UP_HTTP_PROBE_H_

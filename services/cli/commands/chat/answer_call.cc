#include "services/cli/commands/chat/answer_call.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "services/clients/channel.h"

namespace tessera::cli {
namespace {

using parser::v1::ChatStreamResponse;

// Events on their way from gRPC's threads to the caller's, which waits for them in poll.
class Mailbox final {
 public:
  Mailbox() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Mailbox() {
    if (fd_ >= 0) close(fd_);
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Readable when something has come; -1 if the system gave no descriptor.
  int fd() const { return fd_; }

  services::Flow Put(ChatStreamResponse& event) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    events_.emplace_back().Swap(&event);
    Ring();
    return events_.size() < kEventsWaitingMax ? services::Flow::kContinue : services::Flow::kPause;
  }

  void PutEnd(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    end_ = status;
    Ring();
  }

  // What has come since the last time; `end` is set when nothing more will.
  std::vector<ChatStreamResponse> TakeAll(std::optional<absl::Status>& end)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    uint64_t count = 0;
    // An empty eventfd fails with EAGAIN, which is as good.
    [[maybe_unused]] const ssize_t bytes = read(fd_, &count, sizeof(count));
    end = end_;
    return std::exchange(events_, {});
  }

 private:
  void Ring() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t bytes = write(fd_, &one, sizeof(one));
  }

  const int fd_;
  absl::Mutex mutex_;
  std::vector<ChatStreamResponse> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

absl::Status EndStatus(const absl::Status& status, bool finished, bool any) {
  if (finished) return absl::OkStatus();
  if (status.ok()) return absl::InternalError("the parser ended the stream early");
  // Before anything came the status is the caller's to explain: it knows the address.
  return any ? services::PeerStatus(status, "parser", /*sent_any=*/true) : status;
}

}  // namespace

absl::Status RunAnswerCall(services::ParserClient& parser, parser::v1::ChatStreamRequest request,
                           int interrupt_fd,
                           absl::FunctionRef<void(const ChatStreamResponse& event)> on_event) {
  const auto mailbox = std::make_shared<Mailbox>();
  if (mailbox->fd() < 0) return absl::InternalError("no event descriptor could be had");
  const std::shared_ptr<services::ClientCall> call = parser.ChatStream(
      {}, std::move(request),
      {.on_message = [mailbox](ChatStreamResponse& event) { return mailbox->Put(event); },
       .on_done = [mailbox](const absl::Status& status) { mailbox->PutEnd(status); }});
  bool any = false;
  bool finished = false;
  bool interrupted = false;
  while (true) {
    pollfd fds[] = {{.fd = mailbox->fd(), .events = POLLIN, .revents = 0},
                    {.fd = interrupted ? -1 : interrupt_fd, .events = POLLIN, .revents = 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) {
      call->Cancel();
      return absl::InternalError("waiting for the parser failed");
    }
    if (fds[1].revents != 0 && !interrupted) {
      interrupted = true;
      call->Cancel();
    }
    std::optional<absl::Status> end;
    const std::vector<ChatStreamResponse> events = mailbox->TakeAll(end);
    for (const ChatStreamResponse& event : events) {
      if (interrupted) break;
      any = true;
      finished = finished || event.has_finished();
      on_event(event);
    }
    if (end.has_value()) {
      return interrupted ? absl::CancelledError("interrupted") : EndStatus(*end, finished, any);
    }
    if (events.size() >= kEventsWaitingMax) call->Resume();
  }
}

}  // namespace tessera::cli

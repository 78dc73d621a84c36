#include "services/cli/commands/up/health_board.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "services/clients/channel.h"

namespace tessera::cli {

HealthBoard::HealthBoard(EventLoop& loop, Changed changed)
    : loop_(loop),
      changed_(std::move(changed)),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  loop_.Watch(wake_fd_, POLLIN, [this] { Deliver(); });
}

HealthBoard::~HealthBoard() {
  watches_.clear();  // no callback runs from here on
  loop_.Unwatch(wake_fd_);
  ::close(wake_fd_);
}

absl::Status HealthBoard::Watch(size_t server, const std::string& address,
                                const std::string& service) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = services::MakeChannel(address);
  if (!channel.ok()) return channel.status();
  watches_.push_back(services::WatchHealth(
      *std::move(channel), service, [this, server](bool serving) { Post(server, serving); }));
  return absl::OkStatus();
}

void HealthBoard::Post(size_t server, bool serving) {
  {
    absl::MutexLock lock(&mutex_);
    news_.emplace_back(server, serving);
  }
  const uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
}

void HealthBoard::Deliver() {
  uint64_t count = 0;
  (void)!::read(wake_fd_, &count, sizeof count);
  std::vector<std::pair<size_t, bool>> news;
  {
    absl::MutexLock lock(&mutex_);
    news.swap(news_);
  }
  for (const auto& [server, serving] : news) changed_(server, serving);
}

}  // namespace tessera::cli

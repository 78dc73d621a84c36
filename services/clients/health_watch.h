#ifndef TESSERA_SERVICES_CLIENTS_HEALTH_WATCH_H_
#define TESSERA_SERVICES_CLIENTS_HEALTH_WATCH_H_

#include <functional>
#include <memory>
#include <string>

#include "grpcpp/channel.h"

namespace tessera::services {

// What is known of a peer's health. False also when it cannot be reached. Called from gRPC's
// threads, once at first and then at each change.
using HealthChanged = std::function<void(bool serving)>;

// Follows grpc.health.v1.Health/Watch of a peer for as long as it lives, and begins anew when the
// stream ends (after kReconnectBackoffMin to Max).
// Threading: the callback is never called after the destructor has returned.
class HealthWatch {
 public:
  virtual ~HealthWatch() = default;
};

std::unique_ptr<HealthWatch> WatchHealth(std::shared_ptr<grpc::Channel> channel,
                                         std::string service, HealthChanged changed);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_CLIENTS_HEALTH_WATCH_H_

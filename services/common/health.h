#ifndef TESSERA_SERVICES_COMMON_HEALTH_H_
#define TESSERA_SERVICES_COMMON_HEALTH_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "grpcpp/impl/codegen/service_type.h"

namespace tessera::services {

// More watchers than this are refused with kResourceExhausted.
inline constexpr size_t kHealthWatchersMax = 1024;

// grpc.health.v1.Health of one process: Check and Watch. The name "" is the process itself (alive:
// serving from start until it drains); one further name a service says whether that can serve now.
// Unknown names: NOT_FOUND from Check, SERVICE_UNKNOWN from Watch.
//
// Threading: any thread. Watchers hear of a change at once.
class Health final {
 public:
  Health();
  ~Health();
  Health(const Health&) = delete;
  Health& operator=(const Health&) = delete;

  // Adds a name or changes its state. Names begin as not serving. No effect after Drain.
  void Set(std::string_view name, bool serving);
  bool Serving(std::string_view name) const;
  // Every name, "" too, is not serving from now on; watchers hear it, then their streams end.
  void Drain();

  grpc::Service* service();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_HEALTH_H_

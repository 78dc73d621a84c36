#ifndef TESSERA_SERVICES_CLIENTS_CHANNEL_H_
#define TESSERA_SERVICES_CLIENTS_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "services/common/credentials.h"

namespace tessera::services {

// A restarted peer is found again within this time.
inline constexpr absl::Duration kReconnectBackoffMin = absl::Milliseconds(100);
inline constexpr absl::Duration kReconnectBackoffMax = absl::Milliseconds(800);
// A short question (GetModelInfo, Tokenize) may take this long when its caller set no deadline.
inline constexpr absl::Duration kUnaryDurationMax = absl::Seconds(30);

// A channel to the hop below, "HOST:PORT", "dns:///name:port" or "unix:path": bounded messages,
// keepalive, quick reconnection, no proxy, round-robin over all addresses of the name. Connecting
// begins with the first call; a peer that is not there is not an error here.
// Errors: kInvalidArgument for an empty target, kUnimplemented for TLS files.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& target,
                                                           const TlsFiles& tls = {});

// What a hop says when the hop below failed. A peer that is gone is kUnavailable while nothing was
// sent upward (safe to retry) and kAborted after; everything else is passed on as it is. `peer` is
// its name ("engine").
absl::Status PeerStatus(const absl::Status& status, std::string_view peer, bool sent_any);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_CLIENTS_CHANNEL_H_

#include "services/clients/channel.h"

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "services/common/field_error.h"
#include "services/common/server_host.h"
#include "services/common/status_map.h"

namespace tessera::services {
namespace {

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& target,
                                                           const TlsFiles& tls) {
  if (target.empty()) return InvalidField("target", "is empty; give HOST:PORT");
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials =
      MakeChannelCredentials(tls);
  if (!credentials.ok()) return credentials.status();
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(kMessageBytesMax);
  args.SetMaxSendMessageSize(kMessageBytesMax);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kKeepaliveTime));
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kKeepaliveTimeout));
  args.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, Milliseconds(kReconnectBackoffMin));
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, Milliseconds(kReconnectBackoffMin));
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, Milliseconds(kReconnectBackoffMax));
  args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamWindowBytes);
  // The name may have got new addresses at each reconnection.
  args.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, Milliseconds(absl::Seconds(1)));
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Generation must not be repeated behind the caller's back.
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetLoadBalancingPolicyName("round_robin");
  return grpc::CreateCustomChannel(target, *credentials, args);
}

absl::Status PeerStatus(const absl::Status& status, std::string_view peer, bool sent_any) {
  if (status.code() != absl::StatusCode::kUnavailable) return status;
  const absl::string_view name(peer.data(), peer.size());
  // A peer that says why (draining, worker lost) is quoted; a broken connection is described, since
  // gRPC's text speaks of sockets and addresses.
  const bool said_why = RetryDelayOf(status).has_value();
  const std::string why = said_why ? std::string(status.message())
                                   : absl::StrCat("the connection to the ", name, " was lost");
  if (sent_any) {
    return WithReason(absl::AbortedError(absl::StrCat(why, " after tokens had been sent")),
                      "PEER_LOST");
  }
  if (said_why) return status;
  return WithReason(
      absl::UnavailableError(absl::StrCat("the ", name, " cannot be reached; try again")),
      "PEER_UNREACHABLE");
}

}  // namespace tessera::services

#include "services/common/call_context.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"

namespace tessera::services {
namespace {

constexpr char kRequestIdKey[] = "x-request-id";
constexpr char kTraceparentKey[] = "traceparent";
constexpr char kAuthorizationKey[] = "authorization";

std::string Metadata(const grpc::CallbackServerContext& server, const char* key) {
  const auto& all = server.client_metadata();
  const auto found = all.find(key);
  if (found == all.end()) return {};
  return std::string(found->second.data(), found->second.size());
}

}  // namespace

// gRPC's deadlines are points of the wall clock; it turns them into monotonic time when the call
// begins, which is at once.
void CallContext::LimitTo(absl::Duration timeout) {
  deadline = std::min(deadline, absl::ToChronoTime(absl::Now() + timeout));
}

absl::Duration CallContext::Remaining() const {
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteDuration();
  return absl::FromChrono(deadline) - absl::Now();
}

CallContext ReadCallContext(grpc::CallbackServerContext& server, const std::string& request_id,
                            RequestIds& ids) {
  CallContext context;
  context.request_id = Metadata(server, kRequestIdKey);
  if (!IsUsableRequestId(context.request_id)) {
    context.request_id = IsUsableRequestId(request_id) ? request_id : ids.Next();
  }
  context.traceparent = Metadata(server, kTraceparentKey);
  if (!IsTraceparent(context.traceparent)) context.traceparent.clear();
  context.authorization = Metadata(server, kAuthorizationKey);
  if (context.authorization.size() > kAuthorizationBytesMax) context.authorization.clear();
  context.deadline = server.deadline();
  context.LimitTo(kCallDurationMax);
  server.AddInitialMetadata(kRequestIdKey, context.request_id);
  return context;
}

void ApplyCallContext(const CallContext& context, grpc::ClientContext& client) {
  if (!context.request_id.empty()) client.AddMetadata(kRequestIdKey, context.request_id);
  if (!context.traceparent.empty()) client.AddMetadata(kTraceparentKey, context.traceparent);
  if (!context.authorization.empty()) client.AddMetadata(kAuthorizationKey, context.authorization);
  if (context.deadline != std::chrono::system_clock::time_point::max()) {
    client.set_deadline(context.deadline);
  }
  client.set_wait_for_ready(false);
}

bool IsTraceparent(const std::string& text) {
  // 00-<32 hex>-<16 hex>-<2 hex>, lower case, ids not all zero.
  if (text.size() != 55 || text.compare(0, 3, "00-") != 0) return false;
  for (size_t i = 3; i < text.size(); ++i) {
    if (i == 35 || i == 52) {
      if (text[i] != '-') return false;
    } else if (!absl::ascii_isdigit(text[i]) && (text[i] < 'a' || text[i] > 'f')) {
      return false;
    }
  }
  return text.find_first_not_of('0', 3) < 35 && text.find_first_not_of('0', 36) < 52;
}

}  // namespace tessera::services

#include "services/common/status_map.h"

#include <cstdint>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/error_details.h"
#include "services/common/field_error.h"

namespace tessera::services {
namespace {

constexpr char kReasonPayload[] = "tessera.reason";
constexpr char kRetryPayload[] = "tessera.retry_delay_ms";
constexpr char kFieldPayload[] = "tessera.field";  // as field_error.cc

// At most `bytes_max` bytes of `text`, not ending inside a code point.
std::string Shortened(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  constexpr std::string_view kEllipsis = "...";
  size_t end = bytes_max - kEllipsis.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)).append(kEllipsis);
}

// Metadata is protobuf `string`, which must be UTF-8; a message may quote broken outside bytes.
std::string Printable(std::string_view text, size_t bytes_max) {
  std::string out = Shortened(text, bytes_max);
  bool ascii = true;
  for (const char c : out) ascii = ascii && static_cast<unsigned char>(c) < 0x80;
  if (ascii) return out;
  // Keep well-formed sequences, replace the rest by '?'.
  std::string clean;
  for (size_t i = 0; i < out.size();) {
    const auto lead = static_cast<unsigned char>(out[i]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xc2 && lead < 0xe0 ? 2
                          : lead >= 0xe0 && lead < 0xf0 ? 3
                          : lead >= 0xf0 && lead < 0xf5 ? 4
                                                        : 0;
    bool whole = length > 0 && i + length <= out.size();
    for (size_t k = 1; whole && k < length; ++k) {
      whole = (static_cast<unsigned char>(out[i + k]) & 0xc0) == 0x80;
    }
    if (whole && length >= 3) {
      const auto second = static_cast<unsigned char>(out[i + 1]);
      whole = !(lead == 0xe0 && second < 0xa0) && !(lead == 0xed && second >= 0xa0) &&
              !(lead == 0xf0 && second < 0x90) && !(lead == 0xf4 && second >= 0x90);
    }
    if (whole) {
      clean.append(out, i, length);
      i += length;
    } else {
      clean.push_back('?');
      ++i;
    }
  }
  return clean;
}

std::optional<std::string> PayloadOf(const absl::Status& status, absl::string_view url) {
  const absl::optional<absl::Cord> payload = status.GetPayload(url);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

}  // namespace

absl::Status WithReason(absl::Status status, std::string_view reason) {
  status.SetPayload(kReasonPayload, absl::Cord(absl::string_view(reason.data(), reason.size())));
  return status;
}

std::optional<std::string> ReasonOf(const absl::Status& status) {
  return PayloadOf(status, kReasonPayload);
}

absl::Status WithRetryDelay(absl::Status status, absl::Duration delay) {
  status.SetPayload(kRetryPayload, absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(delay))));
  return status;
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  const std::optional<std::string> text = PayloadOf(status, kRetryPayload);
  int64_t ms = 0;
  if (!text.has_value() || !absl::SimpleAtoi(*text, &ms)) return std::nullopt;
  return absl::Milliseconds(ms);
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message =
      Printable({status.message().data(), status.message().size()}, kStatusMessageBytesMax);
  google::rpc::Status rich;
  rich.set_code(static_cast<int>(status.code()));
  rich.set_message(message);

  google::rpc::ErrorInfo info;
  info.set_reason(ReasonOf(status).value_or(std::string(CodeName(status.code()))));
  info.set_domain(kErrorDomain);
  rich.add_details()->PackFrom(info);

  if (const std::optional<std::string> field = FieldOf(status); field.has_value()) {
    google::rpc::BadRequest bad;
    google::rpc::BadRequest::FieldViolation& violation = *bad.add_field_violations();
    violation.set_field(Printable(*field, kStatusFieldBytesMax));
    // The whole message would be there a second time; its first words do.
    violation.set_description(Printable(message, kStatusFieldBytesMax));
    rich.add_details()->PackFrom(bad);
  }

  std::optional<absl::Duration> delay = RetryDelayOf(status);
  if (!delay.has_value() && (status.code() == absl::StatusCode::kResourceExhausted ||
                             status.code() == absl::StatusCode::kUnavailable)) {
    delay = kRetryDelayDefault;
  }
  if (delay.has_value()) {
    google::rpc::RetryInfo retry;
    const int64_t ms = absl::ToInt64Milliseconds(*delay);
    retry.mutable_retry_delay()->set_seconds(ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(ms % 1000) * 1'000'000);
    rich.add_details()->PackFrom(retry);
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      rich.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status rich;
  if (status.error_details().empty() || !rich.ParseFromString(status.error_details())) {
    return result;
  }
  for (const google::protobuf::Any& detail : rich.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad;
    google::rpc::RetryInfo retry;
    if (detail.UnpackTo(&info)) {
      if (info.reason() != CodeName(result.code())) result = WithReason(result, info.reason());
    } else if (detail.UnpackTo(&bad)) {
      if (bad.field_violations_size() > 0) {
        result.SetPayload(kFieldPayload, absl::Cord(bad.field_violations(0).field()));
      }
    } else if (detail.UnpackTo(&retry)) {
      result = WithRetryDelay(result, absl::Seconds(retry.retry_delay().seconds()) +
                                          absl::Nanoseconds(retry.retry_delay().nanos()));
    }
  }
  return result;
}

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:  // kAborted, kInternal, kDataLoss, kUnknown, and codes not invented yet
      return 500;
  }
}

std::string_view CodeName(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return "OK";
    case absl::StatusCode::kCancelled:
      return "CANCELLED";
    case absl::StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case absl::StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case absl::StatusCode::kNotFound:
      return "NOT_FOUND";
    case absl::StatusCode::kAlreadyExists:
      return "ALREADY_EXISTS";
    case absl::StatusCode::kPermissionDenied:
      return "PERMISSION_DENIED";
    case absl::StatusCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case absl::StatusCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case absl::StatusCode::kAborted:
      return "ABORTED";
    case absl::StatusCode::kOutOfRange:
      return "OUT_OF_RANGE";
    case absl::StatusCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case absl::StatusCode::kInternal:
      return "INTERNAL";
    case absl::StatusCode::kUnavailable:
      return "UNAVAILABLE";
    case absl::StatusCode::kDataLoss:
      return "DATA_LOSS";
    case absl::StatusCode::kUnauthenticated:
      return "UNAUTHENTICATED";
    default:
      return "UNKNOWN";
  }
}

}  // namespace tessera::services

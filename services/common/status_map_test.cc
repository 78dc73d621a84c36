#include "services/common/status_map.h"

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "services/common/field_error.h"

namespace tessera::services {
namespace {

google::rpc::Status RichOf(const grpc::Status& status) {
  google::rpc::Status rich;
  EXPECT_TRUE(rich.ParseFromString(status.error_details()));
  return rich;
}

template <class Detail>
bool HasDetail(const google::rpc::Status& rich, Detail& detail) {
  for (const auto& any : rich.details()) {
    if (any.UnpackTo(&detail)) return true;
  }
  return false;
}

TEST(StatusMap, OkIsOkBothWays) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(StatusMap, AFieldErrorCarriesAFieldViolationAndAReason) {
  const grpc::Status status = ToGrpcStatus(InvalidField("messages[2].role", "is missing"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "messages[2].role: is missing");
  const google::rpc::Status rich = RichOf(status);
  EXPECT_EQ(rich.code(), 3);
  google::rpc::BadRequest bad;
  ASSERT_TRUE(HasDetail(rich, bad));
  EXPECT_EQ(bad.field_violations(0).field(), "messages[2].role");
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(HasDetail(rich, info));
  EXPECT_EQ(info.domain(), "tessera");
  EXPECT_EQ(info.reason(), "INVALID_ARGUMENT");
  google::rpc::RetryInfo retry;
  EXPECT_FALSE(HasDetail(rich, retry));
}

TEST(StatusMap, FullAndUnavailableSayWhenToTryAgain) {
  for (const absl::Status& status :
       {absl::ResourceExhaustedError("full"), absl::UnavailableError("gone")}) {
    google::rpc::RetryInfo retry;
    ASSERT_TRUE(HasDetail(RichOf(ToGrpcStatus(status)), retry));
    EXPECT_EQ(retry.retry_delay().seconds(), 1);
  }
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(HasDetail(
      RichOf(ToGrpcStatus(WithRetryDelay(absl::UnavailableError("x"), absl::Milliseconds(2500)))),
      retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
}

TEST(StatusMap, EverythingSurvivesAHop) {
  const absl::Status sent = WithRetryDelay(
      WithReason(InvalidField("prompt", "has 9 bytes; the limit is 8"), "PROMPT_TOO_LONG"),
      absl::Milliseconds(40));
  const absl::Status got = FromGrpcStatus(ToGrpcStatus(sent));
  EXPECT_EQ(got.code(), sent.code());
  EXPECT_EQ(got.message(), sent.message());
  EXPECT_EQ(FieldOf(got), "prompt");
  EXPECT_EQ(ReasonOf(got), "PROMPT_TOO_LONG");
  EXPECT_EQ(RetryDelayOf(got), absl::Milliseconds(40));
}

TEST(StatusMap, LongAndBrokenMessagesAreCutAndCleaned) {
  std::string text(5000, 'a');
  text.replace(kStatusMessageBytesMax - 4, 3, "\xe4\xb8\xad");  // straddles the cut
  const grpc::Status status = ToGrpcStatus(InvalidField(std::string(4000, 'f'), text));
  EXPECT_LE(status.error_message().size(), kStatusMessageBytesMax);
  EXPECT_LT(status.error_details().size(), 2500u);
  EXPECT_EQ(ToGrpcStatus(absl::InternalError("a\xff\xc3(\xed\xa0\x80z\xc3\xa4")).error_message(),
            "a?\?(?\??z\xc3\xa4");
}

TEST(StatusMap, BrokenDetailsKeepCodeAndMessage) {
  const absl::Status status =
      FromGrpcStatus(grpc::Status(grpc::StatusCode::NOT_FOUND, "m", "\xff\xff\xff garbage"));
  EXPECT_EQ(status, absl::NotFoundError("m"));
}

TEST(StatusMap, HttpCodesFollowTheTable) {
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kInvalidArgument), 400);
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kOutOfRange), 400);
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kResourceExhausted), 429);
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kUnavailable), 503);
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kDeadlineExceeded), 504);
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kCancelled), 499);
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kInternal), 500);
  EXPECT_EQ(HttpStatusOf(absl::StatusCode::kNotFound), 404);
}

}  // namespace
}  // namespace tessera::services

#include "services/common/field_error.h"

#include "gtest/gtest.h"

namespace tessera::services {
namespace {

TEST(FieldError, CarriesTheFieldAndPutsItBeforeTheMessage) {
  const absl::Status status = InvalidField("max_tokens", "is 0; give at least 1");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "max_tokens: is 0; give at least 1");
  EXPECT_EQ(FieldOf(status), "max_tokens");
}

TEST(FieldError, AStatusWithoutAFieldNamesNone) {
  EXPECT_EQ(FieldOf(absl::InternalError("x")), std::nullopt);
  EXPECT_EQ(WithFieldPrefix(absl::InternalError("x"), "a."), absl::InternalError("x"));
}

TEST(FieldError, APrefixIsPutBeforeFieldAndMessage) {
  const absl::Status status = WithFieldPrefix(InvalidField("role", "is missing"), "messages[2].");
  EXPECT_EQ(status.message(), "messages[2].role: is missing");
  EXPECT_EQ(FieldOf(status), "messages[2].role");
}

}  // namespace
}  // namespace tessera::services

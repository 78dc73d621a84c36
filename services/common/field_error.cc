#include "services/common/field_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tessera::services {
namespace {

constexpr char kFieldPayload[] = "tessera.field";

absl::string_view Abseil(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

absl::Status FieldError(absl::StatusCode code, std::string_view field, std::string_view message) {
  absl::Status status(code, absl::StrCat(Abseil(field), ": ", Abseil(message)));
  status.SetPayload(kFieldPayload, absl::Cord(Abseil(field)));
  return status;
}

absl::Status InvalidField(std::string_view field, std::string_view message) {
  return FieldError(absl::StatusCode::kInvalidArgument, field, message);
}

std::optional<std::string> FieldOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kFieldPayload);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

absl::Status WithFieldPrefix(const absl::Status& status, std::string_view prefix) {
  const std::optional<std::string> field = FieldOf(status);
  if (!field.has_value()) return status;
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, absl::StrCat(*field, ": "));
  return FieldError(status.code(), absl::StrCat(Abseil(prefix), *field),
                    std::string_view(message.data(), message.size()));
}

}  // namespace tessera::services

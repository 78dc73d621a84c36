#include "services/common/credentials.h"

#include "services/common/field_error.h"

namespace tessera::services {
namespace {

absl::Status RefuseFiles(const TlsFiles& files) {
  if (files.certificate.empty() && files.key.empty() && files.authorities.empty()) {
    return absl::OkStatus();
  }
  return FieldError(absl::StatusCode::kUnimplemented, "tls",
                    "is not built in yet; leave the files out and keep the port on a private "
                    "address");
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& files) {
  if (absl::Status status = RefuseFiles(files); !status.ok()) return status;
  return grpc::InsecureServerCredentials();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFiles& files) {
  if (absl::Status status = RefuseFiles(files); !status.ok()) return status;
  return grpc::InsecureChannelCredentials();
}

}  // namespace tessera::services

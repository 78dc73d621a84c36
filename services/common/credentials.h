#ifndef TESSERA_SERVICES_COMMON_CREDENTIALS_H_
#define TESSERA_SERVICES_COMMON_CREDENTIALS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace tessera::services {

// How a hop is protected; the one place that knows. Empty files: plain text.
struct TlsFiles {
  std::string certificate;  // PEM, our chain
  std::string key;          // PEM
  std::string authorities;  // PEM, whom we trust in the peer
};

// Errors: kUnimplemented when files are named (TLS is not built in yet): better than silently
// serving in plain text.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& files);
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFiles& files);

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_CREDENTIALS_H_

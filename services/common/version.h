#ifndef TESSERA_SERVICES_COMMON_VERSION_H_
#define TESSERA_SERVICES_COMMON_VERSION_H_

namespace tessera::services {

// What --version prints and GetModelInfo answers.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_COMMON_VERSION_H_

#ifndef TESSERA_SERVICES_GATEWAY_JSON_TEXT_H_
#define TESSERA_SERVICES_GATEWAY_JSON_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::gateway {

// Writes JSON by appending text: a token's chunk is a few hundred bytes of fixed text around one
// string, so building a tree for it would cost more than everything else the gateway does.

// Appends `text` in quotes, escaped. Broken UTF-8 becomes U+FFFD, one a byte, so that the output is
// valid whatever comes in. Non-ASCII is not escaped. Cost: one pass.
void AppendJsonString(std::string& out, std::string_view text);

// Appends the shortest decimal that reads back as the same float. JSON has no infinities: values
// outside +-9999 (a token of probability 0) are written as +-9999, as OpenAI servers do; NaN too.
void AppendJsonFloat(std::string& out, float value);

void AppendJsonInteger(std::string& out, int64_t value);

}  // namespace tessera::gateway

#endif  // TESSERA_SERVICES_GATEWAY_JSON_TEXT_H_

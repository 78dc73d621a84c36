#include "tokenizer/bpe/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "tokenizer/vocab/utf8.h"

namespace tessera::tokenizer {
namespace {

constexpr char32_t kAlphabetEnd = 0x100 + 68;
constexpr int16_t kNone = -1;

constexpr bool StandsForItself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr std::array<int16_t, kAlphabetEnd> MakeByteOf() {
  std::array<int16_t, kAlphabetEnd> byte_of{};
  byte_of.fill(kNone);
  int16_t next = 0x100;
  for (int16_t byte = 0; byte < 256; ++byte) {
    byte_of[StandsForItself(byte) ? byte : next++] = byte;
  }
  return byte_of;
}

constexpr std::array<int16_t, kAlphabetEnd> kByteOf = MakeByteOf();

}  // namespace

bool BytesOfSpelling(std::string_view spelling, std::string& bytes) {
  const size_t size_before = bytes.size();
  for (size_t pos = 0; pos < spelling.size();) {
    const char32_t c = NextCodePoint(spelling, pos);
    if (c >= kAlphabetEnd || kByteOf[c] == kNone) {
      bytes.resize(size_before);
      return false;
    }
    bytes.push_back(static_cast<char>(kByteOf[c]));
  }
  return true;
}

}  // namespace tessera::tokenizer

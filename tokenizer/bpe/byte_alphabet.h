#ifndef TESSERA_TOKENIZER_BPE_BYTE_ALPHABET_H_
#define TESSERA_TOKENIZER_BPE_BYTE_ALPHABET_H_

#include <string>
#include <string_view>

namespace tessera::tokenizer {

// Byte-level vocabularies spell each byte as one printable character: 33-126, 161-172 and 174-255
// as themselves, the other 68 in order as U+0100 and up.

// Appends the bytes that `spelling` stands for. False (and `bytes` unchanged) if it has a character
// outside the alphabet.
bool BytesOfSpelling(std::string_view spelling, std::string& bytes);

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_BPE_BYTE_ALPHABET_H_

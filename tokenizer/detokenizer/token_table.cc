#include "tokenizer/detokenizer/token_table.h"

namespace tessera::tokenizer {

void TokenTable::Add(std::string_view bytes, uint8_t kind) {
  bytes_.append(bytes);
  begins_.push_back(static_cast<uint32_t>(bytes_.size()));
  kinds_.push_back(kind);
}

}  // namespace tessera::tokenizer

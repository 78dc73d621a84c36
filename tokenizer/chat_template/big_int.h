#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_BIG_INT_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_BIG_INT_H_

// Python's integers beyond 64 bits: a template may multiply its way there, and JSON may hold them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/chat_template/value.h"

namespace tessera::tokenizer::jinja {

struct BigInt {
  std::vector<uint32_t> limbs;  // least first, no leading zero; empty is 0
  bool negative = false;

  static constexpr size_t kLimbsMax = 2048;  // 65536 bits

  static BigInt Of(int64_t v);
  static BigInt OfUnsigned(uint64_t v);
  static BigInt OfValue(const Value& integral);
  static BigInt OfDouble(double whole);  // finite, truncated
  // Digits only, base 2 to 36, already checked.
  static BigInt Parse(std::string_view digits, int base);
  bool zero() const { return limbs.empty(); }
  bool FitsInt64() const;
  int64_t ToInt64() const;
  double ToDouble() const;  // infinite if too large; rounded to nearest even
  std::string ToString(int base = 10) const;
};

int Compare(const BigInt& a, const BigInt& b);
BigInt Add(const BigInt& a, const BigInt& b);
BigInt Negate(BigInt a);
BigInt Multiply(const BigInt& a, const BigInt& b);
// Python's floor division; b is not 0.
void DivideFloor(const BigInt& a, const BigInt& b, BigInt& quotient, BigInt& remainder);
// A kInt if it fits, else a kBigInt in the arena.
Value ToValue(Arena& arena, const BigInt& v);

}  // namespace tessera::tokenizer::jinja

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_BIG_INT_H_

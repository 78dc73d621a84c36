#include "tokenizer/chat_template/big_int.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::tokenizer::jinja {
namespace {

using Limbs = std::vector<uint32_t>;

void Trim(Limbs& a) {
  while (!a.empty() && a.back() == 0) a.pop_back();
}

int CompareMagnitude(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

Limbs AddMagnitude(const Limbs& a, const Limbs& b) {
  Limbs sum(std::max(a.size(), b.size()) + 1);
  uint64_t carry = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    carry += (i < a.size() ? a[i] : 0) + uint64_t{i < b.size() ? b[i] : 0};
    sum[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  Trim(sum);
  return sum;
}

// a >= b
Limbs SubtractMagnitude(const Limbs& a, const Limbs& b) {
  Limbs difference(a.size());
  int64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t d = int64_t{a[i]} - (i < b.size() ? b[i] : 0) - borrow;
    borrow = d < 0;
    if (borrow) d += int64_t{1} << 32;
    difference[i] = static_cast<uint32_t>(d);
  }
  Trim(difference);
  return difference;
}

uint32_t DivideSmall(Limbs& a, uint32_t divisor) {
  uint64_t rest = 0;
  for (size_t i = a.size(); i-- > 0;) {
    rest = (rest << 32) | a[i];
    a[i] = static_cast<uint32_t>(rest / divisor);
    rest %= divisor;
  }
  Trim(a);
  return static_cast<uint32_t>(rest);
}

// Long division, one bit of the quotient at a time: these numbers are rare and bounded.
void DivideMagnitude(const Limbs& a, const Limbs& b, Limbs& quotient, Limbs& rest) {
  quotient.clear();
  rest.clear();
  if (b.size() == 1) {
    quotient = a;
    const uint32_t r = DivideSmall(quotient, b[0]);
    if (r != 0) rest.push_back(r);
    return;
  }
  quotient.assign(a.size(), 0);
  for (size_t bit = a.size() * 32; bit-- > 0;) {
    uint32_t carry = (a[bit / 32] >> (bit % 32)) & 1;
    for (uint32_t& limb : rest) {
      const uint32_t next = limb >> 31;
      limb = (limb << 1) | carry;
      carry = next;
    }
    if (carry != 0) rest.push_back(carry);
    if (CompareMagnitude(rest, b) >= 0) {
      rest = SubtractMagnitude(rest, b);
      quotient[bit / 32] |= uint32_t{1} << (bit % 32);
    }
  }
  Trim(quotient);
}

}  // namespace

BigInt BigInt::OfUnsigned(uint64_t v) {
  BigInt big;
  for (; v != 0; v >>= 32) big.limbs.push_back(static_cast<uint32_t>(v));
  return big;
}

BigInt BigInt::Of(int64_t v) {
  BigInt big = OfUnsigned(v < 0 ? ~static_cast<uint64_t>(v) + 1 : static_cast<uint64_t>(v));
  big.negative = v < 0;
  return big;
}

BigInt BigInt::OfValue(const Value& integral) {
  if (integral.kind != Kind::kBigInt) return Of(integral.integer);
  BigInt big;
  big.limbs.assign(integral.big->limbs, integral.big->limbs + integral.big->count);
  big.negative = integral.big->negative;
  return big;
}

BigInt BigInt::OfDouble(double whole) {
  BigInt big;
  big.negative = whole < 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(std::trunc(whole)), &exponent);
  if (fraction == 0) return BigInt();
  uint64_t mantissa = static_cast<uint64_t>(std::ldexp(fraction, 53));
  const int shift = exponent - 53;
  if (shift <= 0) {
    mantissa >>= -shift;
    const bool negative = big.negative;
    big = OfUnsigned(mantissa);
    big.negative = negative && !big.zero();
    return big;
  }
  big.limbs.assign(static_cast<size_t>(shift / 32), 0);
  const int bits = shift % 32;
  const unsigned __int128 shifted = static_cast<unsigned __int128>(mantissa) << bits;
  for (int i = 0; i < 3; ++i) big.limbs.push_back(static_cast<uint32_t>(shifted >> (32 * i)));
  Trim(big.limbs);
  return big;
}

BigInt BigInt::Parse(std::string_view digits, int base) {
  BigInt big;
  for (const char c : digits) {
    uint64_t carry = static_cast<uint64_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    for (uint32_t& limb : big.limbs) {
      carry += uint64_t{limb} * static_cast<uint64_t>(base);
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) big.limbs.push_back(static_cast<uint32_t>(carry));
  }
  return big;
}

bool BigInt::FitsInt64() const {
  if (limbs.size() > 2) return false;
  uint64_t v = 0;
  for (size_t i = limbs.size(); i-- > 0;) v = (v << 32) | limbs[i];
  return negative ? v <= uint64_t{1} << 63 : v < uint64_t{1} << 63;
}

int64_t BigInt::ToInt64() const {
  uint64_t v = 0;
  for (size_t i = limbs.size(); i-- > 0;) v = (v << 32) | limbs[i];
  return static_cast<int64_t>(negative ? ~v + 1 : v);
}

double BigInt::ToDouble() const {
  if (limbs.empty()) return 0;
  // The top 64 bits, the lowest of them sticky, round once when they become a double.
  uint64_t top = 0;
  bool sticky = false;
  const size_t bit_count = limbs.size() * 32 - static_cast<size_t>(__builtin_clz(limbs.back()));
  const size_t skip = bit_count > 64 ? bit_count - 64 : 0;
  for (size_t bit = 0; bit < bit_count; ++bit) {
    const uint64_t b = (limbs[bit / 32] >> (bit % 32)) & 1;
    if (bit < skip) {
      sticky |= b != 0;
    } else {
      top |= b << (bit - skip);
    }
  }
  if (sticky) top |= 1;
  const double magnitude = std::ldexp(static_cast<double>(top), static_cast<int>(skip));
  return negative ? -magnitude : magnitude;
}

std::string BigInt::ToString(int base) const {
  if (limbs.empty()) return "0";
  std::string digits;
  Limbs rest = limbs;
  while (!rest.empty()) {
    // Nine digits of base 10 at a time; other bases are only asked for small widths.
    const int chunk = base == 10 ? 9 : 1;
    uint32_t part = DivideSmall(rest, base == 10 ? 1'000'000'000 : static_cast<uint32_t>(base));
    for (int i = 0; i < chunk && (part != 0 || !rest.empty() || i == 0); ++i) {
      digits.push_back("0123456789abcdefghijklmnopqrstuvwxyz"[part % base]);
      part /= base;
    }
  }
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  if (negative) digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  return digits;
}

int Compare(const BigInt& a, const BigInt& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  const int c = CompareMagnitude(a.limbs, b.limbs);
  return a.negative ? -c : c;
}

BigInt Add(const BigInt& a, const BigInt& b) {
  BigInt sum;
  if (a.negative == b.negative) {
    sum.limbs = AddMagnitude(a.limbs, b.limbs);
    sum.negative = a.negative;
  } else if (CompareMagnitude(a.limbs, b.limbs) >= 0) {
    sum.limbs = SubtractMagnitude(a.limbs, b.limbs);
    sum.negative = a.negative;
  } else {
    sum.limbs = SubtractMagnitude(b.limbs, a.limbs);
    sum.negative = b.negative;
  }
  if (sum.zero()) sum.negative = false;
  return sum;
}

BigInt Negate(BigInt a) {
  a.negative = !a.negative && !a.zero();
  return a;
}

BigInt Multiply(const BigInt& a, const BigInt& b) {
  BigInt product;
  product.limbs.assign(a.limbs.size() + b.limbs.size(), 0);
  for (size_t i = 0; i < a.limbs.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.limbs.size() || carry != 0; ++j) {
      carry += product.limbs[i + j] + uint64_t{a.limbs[i]} * (j < b.limbs.size() ? b.limbs[j] : 0);
      product.limbs[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  Trim(product.limbs);
  product.negative = a.negative != b.negative && !product.zero();
  return product;
}

void DivideFloor(const BigInt& a, const BigInt& b, BigInt& quotient, BigInt& remainder) {
  quotient = BigInt();
  remainder = BigInt();
  DivideMagnitude(a.limbs, b.limbs, quotient.limbs, remainder.limbs);
  if (a.negative != b.negative && !remainder.zero()) {
    quotient.limbs = AddMagnitude(quotient.limbs, {1});
    remainder.limbs = SubtractMagnitude(b.limbs, remainder.limbs);
  }
  quotient.negative = a.negative != b.negative && !quotient.zero();
  remainder.negative = b.negative && !remainder.zero();
}

Value ToValue(Arena& arena, const BigInt& v) {
  if (v.FitsInt64()) return Value::Int(v.ToInt64());
  auto* object = arena.New<BigIntObject>();
  auto* limbs = arena.Array<uint32_t>(v.limbs.size());
  std::copy(v.limbs.begin(), v.limbs.end(), limbs);
  object->limbs = limbs;
  object->count = static_cast<uint32_t>(v.limbs.size());
  object->negative = v.negative;
  Value value = Value::Of(Kind::kBigInt);
  value.big = object;
  return value;
}

}  // namespace tessera::tokenizer::jinja

#include "tests/unit/reference/f8.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom::testing {
namespace {

constexpr unsigned kSign = 0x80, kCodes = 0x80;

double magnitude(DType type, unsigned code) {
  const bool narrow = type == DType::f8e4m3;
  const int fraction_bits = narrow ? 3 : 2, bias = narrow ? 7 : 15, exponents = narrow ? 16 : 32;
  const int exponent = static_cast<int>(code >> fraction_bits);
  const int fraction = static_cast<int>(code) - (exponent << fraction_bits);
  if (narrow && exponent == exponents - 1 && fraction == 7) return std::nan("");
  if (!narrow && exponent == exponents - 1) return fraction == 0 ? HUGE_VAL : std::nan("");
  const double share = std::ldexp(fraction, -fraction_bits);
  return exponent == 0 ? std::ldexp(share, 1 - bias) : std::ldexp(1 + share, exponent - bias);
}

std::array<double, kCodes> every_magnitude(DType type) {
  std::array<double, kCodes> all;
  for (unsigned code = 0; code < kCodes; ++code) all[code] = magnitude(type, code);
  return all;
}

}  // namespace

double f8_number(DType type, unsigned code) {
  return std::copysign(magnitude(type, code & ~kSign), (code & kSign) != 0 ? -1.0 : 1.0);
}

unsigned nearest_f8(DType type, double x) {
  const unsigned sign = std::signbit(x) ? kSign : 0;
  if (std::isnan(x)) return sign | 0x7F;
  // Differences from much larger numbers would all be equal in double.
  const double size = std::min(std::abs(x), 1e6);
  static const auto e4m3 = every_magnitude(DType::f8e4m3), e5m2 = every_magnitude(DType::f8e5m2);
  const auto& magnitudes = type == DType::f8e4m3 ? e4m3 : e5m2;
  unsigned nearest = 0;
  for (unsigned code = 1; code < kCodes && std::isfinite(magnitudes[code]); ++code) {
    const double before = std::abs(size - magnitudes[nearest]);
    const double after = std::abs(size - magnitudes[code]);
    if (after < before || (after == before && code % 2 == 0)) nearest = code;
  }
  return sign | nearest;
}

}  // namespace headroom::testing

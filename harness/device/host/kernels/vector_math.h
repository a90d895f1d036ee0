// Elementary functions that the compiler can vectorise: arithmetic and bit patterns only.
#pragma once

#include <bit>
#include <cstdint>

namespace headroom::host {

// e^x for x in [-87, 88]; 0 below, e^88 above. Range reduction and polynomial are those of the
// Cephes library (Moshier), relative error about 2^-23.
[[gnu::always_inline]] inline float exponential(float x) {
  const bool vanishes = x < -87.0F;
  x = vanishes ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  constexpr float kRounding = 12582912.0F;  // 1.5 · 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504088896341F + kRounding;
  const float n = shifted - kRounding;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) + 127U) << 23U;
  return vanishes ? 0.0F : p * std::bit_cast<float>(exponent);
}

}  // namespace headroom::host

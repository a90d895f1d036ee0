// The two element types of 8 bits of Micikevicius et al. 2022, "FP8 Formats for Deep Learning", and
// the scale that brings a tensor into their range. constexpr, as in element.h.
#pragma once

#include <bit>
#include <cstdint>

#include "harness/device/host/kernels/element.h"

namespace headroom::host {

// 4 bits of exponent, 3 of fraction: up to 448, in steps of 2^-9 below 2^-6. No infinities, and one
// fraction of the last exponent means NaN: its other numbers buy range.
struct F8E4M3 {
  std::uint8_t bits;
  static constexpr unsigned kFraction = 3, kBias = 7;
  static constexpr unsigned kNan = 0x7F, kFirstNotFinite = 0x7F;  // without the sign
  static constexpr float kLargest = 448;
};

// 5 bits of exponent, 2 of fraction: up to 57344, in steps of 2^-16 below 2^-14; infinities and NaN
// as in IEEE types.
struct F8E5M2 {
  std::uint8_t bits;
  static constexpr unsigned kFraction = 2, kBias = 15;
  static constexpr unsigned kNan = 0x7F, kFirstNotFinite = 0x7C;
  static constexpr float kLargest = 57344;
};

template <typename F8>
concept EightBits = requires {
  F8::kFirstNotFinite;
};

// As for F16: exponent and fraction move to their places in a float, and the difference of the
// biases is multiplied in.
template <EightBits F8>
[[gnu::always_inline]] constexpr float load(F8 element) {
  constexpr unsigned kPlaces = 23 - F8::kFraction;
  constexpr auto kBiases = std::bit_cast<float>((254U - F8::kBias) << 23U);
  const std::uint32_t code = element.bits & 0x7FU;
  const auto number = std::bit_cast<std::uint32_t>(std::bit_cast<float>(code << kPlaces) * kBiases);
  // An infinity has no fraction.
  const std::uint32_t other =
      code == F8::kFirstNotFinite && F8::kFirstNotFinite != F8::kNan ? 0x7F800000U : 0x7FC00000U;
  const std::uint32_t magnitude = code < F8::kFirstNotFinite ? number : other;
  return std::bit_cast<float>(magnitude | (element.bits & 0x80U) << 24U);
}

// Rounded to nearest, ties to even; saturated: what is larger than kLargest, infinities too,
// becomes it. NaN stays NaN.
template <EightBits F8>
[[gnu::always_inline]] constexpr void store(F8& element, float x) {
  constexpr unsigned kPlaces = 23 - F8::kFraction;
  constexpr std::uint32_t kSmallestNormal = (128U - F8::kBias) << 23U;
  constexpr auto kLargest = std::bit_cast<std::uint32_t>(F8::kLargest);
  // Beside this number the last place of a float is that of the subnormal ones.
  constexpr std::uint32_t kBeside = (128U - F8::kBias + kPlaces) << 23U;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t all = bits & 0x7FFFFFFFU;
  const std::uint32_t magnitude = all < kLargest ? all : kLargest;
  const std::uint32_t rounded =
      magnitude + ((1U << (kPlaces - 1)) - 1) + ((magnitude >> kPlaces) & 1U);
  const std::uint32_t normal = (rounded - ((127U - F8::kBias) << 23U)) >> kPlaces;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) +
                                                               std::bit_cast<float>(kBeside)) -
                                  kBeside;
  const std::uint32_t number = magnitude < kSmallestNormal ? subnormal : normal;
  element.bits =
      static_cast<std::uint8_t>((all > 0x7F800000U ? F8::kNan : number) | (bits >> 24U & 0x80U));
}

// What `quantise` multiplies by, so that the tensor's largest magnitude becomes the largest number:
// at most 2^126, whose inverse is a normal float. `largest` may be 0, infinite and NaN.
template <EightBits F8>
constexpr float inverse_scale(float largest) {
  constexpr float kMost = 0x1p126F;
  if (largest == 0) return 1;
  const float inverse = F8::kLargest / largest;
  return inverse > kMost ? kMost : inverse;
}

}  // namespace headroom::host

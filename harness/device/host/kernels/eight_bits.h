// The two 8-bit element types of Micikevicius et al. 2022, "FP8 Formats for Deep Learning", and the
// scale that maps a tensor to their range. constexpr, as in element.h.
#pragma once

#include <bit>
#include <cstdint>

#include "harness/device/host/kernels/element.h"

namespace headroom::host {

// 4 exponent bits, 3 fraction bits: up to 448, in steps of 2^-9 below 2^-6. There are no
// infinities, and only one fraction of the highest exponent means NaN; the others extend the range.
struct F8E4M3 {
  std::uint8_t bits;
  static constexpr unsigned kFraction = 3, kBias = 7;
  static constexpr unsigned kNan = 0x7F, kFirstNotFinite = 0x7F;  // without the sign
  static constexpr float kLargest = 448;
};

// 5 exponent bits, 2 fraction bits: up to 57344, in steps of 2^-16 below 2^-14; infinities and NaN
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

// As for F16: exponent and fraction are shifted to their positions in a float, which is then
// multiplied by a power of two for the difference of the biases.
template <EightBits F8>
[[gnu::always_inline]] constexpr float load(F8 element) {
  constexpr unsigned kPlaces = 23 - F8::kFraction;
  constexpr auto kBiases = std::bit_cast<float>((254U - F8::kBias) << 23U);
  const std::uint32_t code = element.bits & 0x7FU;
  const auto number = std::bit_cast<std::uint32_t>(std::bit_cast<float>(code << kPlaces) * kBiases);
  // An infinity has fraction 0.
  const std::uint32_t other =
      code == F8::kFirstNotFinite && F8::kFirstNotFinite != F8::kNan ? 0x7F800000U : 0x7FC00000U;
  const std::uint32_t magnitude = code < F8::kFirstNotFinite ? number : other;
  return std::bit_cast<float>(magnitude | (element.bits & 0x80U) << 24U);
}

// Rounds to nearest, ties to even, and saturates: larger magnitudes than kLargest, including
// infinities, become kLargest. NaN stays NaN.
template <EightBits F8>
[[gnu::always_inline]] constexpr void store(F8& element, float x) {
  constexpr unsigned kPlaces = 23 - F8::kFraction;
  constexpr std::uint32_t kSmallestNormal = (128U - F8::kBias) << 23U;
  constexpr auto kLargest = std::bit_cast<std::uint32_t>(F8::kLargest);
  // The last place of a float of this magnitude equals the step of the subnormal numbers.
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

// The factor by which `quantise` multiplies, so that the tensor's largest magnitude becomes the
// largest number of the type: at most 2^126, whose inverse is a normal float. `largest` may be 0,
// infinite or NaN.
template <EightBits F8>
constexpr float inverse_scale(float largest) {
  constexpr float kMost = 0x1p126F;
  if (largest == 0) return 1;
  const float inverse = F8::kLargest / largest;
  return inverse > kMost ? kMost : inverse;
}

}  // namespace headroom::host

// Element types of Headroom's own loops: stored in 16 or 32 bits, computed in f32. constexpr, so
// that nvcc can compile them for the GPU.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "harness/program/value.h"

namespace headroom::host {

// The upper half of a float: the same range, with 8 bits of precision.
struct Bf16 {
  std::uint16_t bits;
};

// IEEE half precision: 5 bits of exponent, 11 bits of precision.
struct F16 {
  std::uint16_t bits;
};

[[gnu::always_inline]] constexpr float load(float element) { return element; }
[[gnu::always_inline]] constexpr float load(Bf16 element) {
  return std::bit_cast<float>(std::uint32_t{element.bits} << 16U);
}

[[gnu::always_inline]] constexpr void store(float& element, float x) { element = x; }
// Rounds to nearest, ties to even; NaN stays NaN.
[[gnu::always_inline]] constexpr void store(Bf16& element, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const std::uint32_t quiet = bits | 0x400000U;
  element.bits = static_cast<std::uint16_t>((x != x ? quiet : rounded) >> 16U);
}

// Exponent and fraction are shifted to their positions in a float, which is then multiplied by a
// power of two for the difference of the biases; this also makes subnormal numbers normal. It
// vectorises on processors without a conversion instruction.
[[gnu::always_inline]] constexpr float load(F16 element) {
  const std::uint32_t magnitude = (element.bits & 0x7FFFU) << 13U;
  const auto number = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const std::uint32_t not_finite = (element.bits & 0x7C00U) == 0x7C00U ? 0x7F800000U : 0U;
  return std::bit_cast<float>(number | not_finite | (element.bits & 0x8000U) << 16U);
}
// Rounds to nearest, ties to even; infinite from 65520 on; NaN stays NaN.
[[gnu::always_inline]] constexpr void store(F16& element, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13U) & 1U);
  const std::uint32_t normal = (rounded - 0x38000000U) >> 13U;
  // The last place of a float near 1/2 equals the step of the subnormal numbers, so adding 1/2
  // rounds to it.
  const auto beside_half =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  const std::uint32_t finite = magnitude < 0x38800000U ? beside_half : normal;
  const std::uint32_t not_finite = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
  element.bits = static_cast<std::uint16_t>((magnitude < 0x47800000U ? finite : not_finite) |
                                            (bits >> 16U & 0x8000U));
}

template <typename T>
const T* elements(const std::byte* data) {
  return reinterpret_cast<const T*>(data);
}
template <typename T>
T* elements(std::byte* data) {
  return reinterpret_cast<T*>(data);
}

// Returns make(T{}) for the element type T of the value. Lowering admits no other types.
template <typename Make>
auto for_type_of(const Value& value, Make make) {
  if (value.dtype == DType::f16) return make(F16{});
  return value.dtype == DType::bf16 ? make(Bf16{}) : make(float{});
}

}  // namespace headroom::host

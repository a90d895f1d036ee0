// Element types of the loops of our own: kept in 16 or 32 bits, computed in f32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "harness/program/value.h"

namespace headroom::host {

// The upper half of a float: its range, with 8 bits of precision.
struct Bf16 {
  std::uint16_t bits;
};

[[gnu::always_inline]] inline float load(float element) { return element; }
[[gnu::always_inline]] inline float load(Bf16 element) {
  return std::bit_cast<float>(std::uint32_t{element.bits} << 16U);
}

[[gnu::always_inline]] inline void store(float& element, float x) { element = x; }
// Rounded to nearest, ties to even; NaN stays NaN.
[[gnu::always_inline]] inline void store(Bf16& element, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const std::uint32_t quiet = bits | 0x400000U;
  element.bits = static_cast<std::uint16_t>((x != x ? quiet : rounded) >> 16U);
}

template <typename T>
const T* elements(const std::byte* data) {
  return reinterpret_cast<const T*>(data);
}
template <typename T>
T* elements(std::byte* data) {
  return reinterpret_cast<T*>(data);
}

// Returns make(T{}) for the type T in which the value is kept. Lowering lets no other through.
template <typename Make>
auto for_type_of(const Value& value, Make make) {
  return value.dtype == DType::bf16 ? make(Bf16{}) : make(float{});
}

}  // namespace headroom::host

// Channels-last images: a row of memory is a pixel, and n neighbouring channels of it are a column.
#pragma once

#include <type_traits>

#include "harness/device/cuda/module/work/map.h"
#include "harness/program/lowering/channels_last.h"

namespace headroom::cuda {

struct Pixels {
  Index rows;
  Index channels;

  explicit Pixels(const Shape& x) : rows(x[0] * x[2] * x[3]), channels(x[1]) {}
};

// Returns make(T{}, n) for the element type T of these images and the n channels of a column, a
// constant: as many as take 16 bytes where that divides them.
template <typename Make>
auto for_columns_of(const Value& x, Make make) {
  const auto of_type = [&](auto element) {
    if (x.shape[1] % 8 == 0) return make(element, std::integral_constant<int, 8>{});
    return make(element, std::integral_constant<int, 1>{});
  };
  return x.dtype == DType::bf16 ? of_type(host::Bf16{}) : of_type(host::F16{});
}

}  // namespace headroom::cuda

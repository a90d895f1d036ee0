// Quantisation to 8 bits in two passes over the tensor: its largest magnitude, then its codes.
#include <algorithm>
#include <bit>
#include <vector>

#include "harness/device/host/kernels/eight_bits.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"

namespace headroom::host {
namespace {

// Compares the bits without the sign, which order as the magnitudes do with NaN above all, so that
// no NaN is overlooked.
template <typename T>
HEADROOM_VECTORISED std::uint32_t largest_magnitude(const T* x, std::size_t begin,
                                                    std::size_t end) {
  std::uint32_t largest = 0;
  for (std::size_t i = begin; i < end; ++i)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(load(x[i])) & 0x7FFFFFFFU);
  return largest;
}

template <typename T, typename F8>
HEADROOM_VECTORISED void encode(const T* __restrict x, F8* __restrict codes, float inverse,
                                std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) store(codes[i], load(x[i]) * inverse);
}

template <typename T, typename F8>
Kernel quantise(std::size_t count) {
  std::vector<std::uint32_t> parts((count + kPartFloats - 1) / kPartFloats);
  return [count, parts](const OpBuffers& buffers) mutable {
    const T* x = elements<T>(buffers.inputs[0]);
    F8* codes = elements<F8>(buffers.outputs[0]);
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      parts[begin / kPartFloats] = largest_magnitude<T>(x, begin, end);
    });
    const std::uint32_t largest = *std::max_element(parts.begin(), parts.end());
    const float inverse = inverse_scale<F8>(std::bit_cast<float>(largest));
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      encode<T, F8>(x, codes, inverse, begin, end);
    });
    *floats(buffers.outputs[1]) = 1 / inverse;
  };
}

}  // namespace

Kernel make_quantise(const Op& op, const Program& program) {
  const Value &x = program.value(op.inputs[0]), &codes = program.value(op.outputs[0]);
  const auto count = static_cast<std::size_t>(element_count(x.shape));
  return for_type_of(x, [&]<typename T>(T) {
    return codes.dtype == DType::f8e4m3 ? quantise<T, F8E4M3>(count) : quantise<T, F8E5M2>(count);
  });
}

}  // namespace headroom::host

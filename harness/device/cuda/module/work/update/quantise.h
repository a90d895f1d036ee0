// Quantises to 8 bits in two passes over the tensor, as on the host: the largest magnitude, then
// the codes.
#pragma once

#include "harness/device/cuda/module/work/work.h"
#include "harness/device/host/kernels/eight_bits.h"

namespace headroom::cuda {

// Magnitudes as bits without the sign: their order is that of magnitudes with NaN above all, so
// none is missed.
template <typename T>
struct MagnitudeBits {
  const T* x;
  HEADROOM_DEVICE std::uint32_t operator()(Index i) const {
    return std::bit_cast<std::uint32_t>(load(x[i])) & 0x7FFFFFFFU;
  }
};

struct LargerBits {
  HEADROOM_DEVICE std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    return a < b ? b : a;
  }
};

template <typename F8>
HEADROOM_DEVICE float inverse_scale_of(std::uint32_t largest) {
  return host::inverse_scale<F8>(std::bit_cast<float>(largest));
}

template <typename T, typename F8>
class Quantise {
 public:
  explicit Quantise(Index count) : count_(count) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T* x = elements<T>(buffers.inputs[0]);
    F8* codes = elements<F8>(buffers.outputs[0]);
    float* scale = floats(buffers.outputs[1]);
    auto* largest = queue.template scratch<std::uint32_t>(1);
    queue.reduce(count_, MagnitudeBits<T>{x}, LargerBits{}, std::uint32_t{0}, largest);
    queue.for_each(count_, [=] HEADROOM_DEVICE(Index i) {
      host::store(codes[i], load(x[i]) * inverse_scale_of<F8>(*largest));
    });
    queue.for_each(1, [=] HEADROOM_DEVICE(Index) { *scale = 1 / inverse_scale_of<F8>(*largest); });
  }

 private:
  Index count_;
};

template <typename Queue>
Work<Queue> make_quantise(const Op& op, const Program& program) {
  const Value& x = program.value(op.inputs[0]);
  const Index count = element_count(x.shape);
  return host::for_type_of(x, [&]<typename T>(T) -> Work<Queue> {
    if (program.value(op.outputs[0]).dtype == DType::f8e4m3)
      return Quantise<T, host::F8E4M3>(count);
    return Quantise<T, host::F8E5M2>(count);
  });
}

template <typename Queue>
Works<Queue> quantise_works() {
  return {{"quantise", make_quantise<Queue>}};
}

}  // namespace headroom::cuda

#include "harness/device/host/kernels/emulated.h"

#include "harness/base/error.h"
#include "harness/device/host/kernels/eight_bits.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"

namespace headroom::host {
namespace {

template <typename T>
HEADROOM_VECTORISED void widen(const T* __restrict from, float* __restrict to, float scale,
                               std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) to[i] = load(from[i]) * scale;
}

template <typename T>
HEADROOM_VECTORISED void narrow(const float* __restrict from, T* __restrict to, std::size_t begin,
                                std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) store(to[i], from[i]);
}

// Calls body(T{}) for the element type T of the operand.
template <typename Body>
void for_type(DType kept, Body body) {
  switch (kept) {
    case DType::bf16:
      return body(Bf16{});
    case DType::f16:
      return body(F16{});
    case DType::f8e4m3:
      return body(F8E4M3{});
    case DType::f8e5m2:
      return body(F8E5M2{});
    default:
      throw Error("the library computes with " + std::string(to_string(kept)) + " itself");
  }
}

}  // namespace

Emulated::Emulated(const Op& op, std::size_t operand, DType kept, std::size_t count, Bytes begin)
    : operand_(operand), kept_(kept), count_(count), begin_(begin) {
  // The scales of the two factors are the last inputs, in the factors' order.
  if (is_f8(kept)) scale_ = op.inputs.size() - 2 + operand;
}

void Emulated::copy_in(const OpBuffers& buffers) const {
  const float scale = scale_ == kNone ? 1.0F : *floats(buffers.inputs[scale_]);
  for_type(kept_, [&]<typename T>(T) {
    in_parallel(count_, [&](std::size_t begin, std::size_t end) {
      widen<T>(elements<T>(buffers.inputs[operand_]), floats(copy(buffers)), scale, begin, end);
    });
  });
}

void Emulated::copy_out(const OpBuffers& buffers) const {
  for_type(kept_, [&]<typename T>(T) {
    in_parallel(count_, [&](std::size_t begin, std::size_t end) {
      narrow<T>(floats(copy(buffers)), elements<T>(buffers.outputs[operand_]), begin, end);
    });
  });
}

}  // namespace headroom::host

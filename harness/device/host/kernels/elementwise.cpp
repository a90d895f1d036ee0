// Loops over whole buffers, padding included: padding holds zeros, and all of these map zeros
// to zeros.
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"

namespace headroom::host {
namespace {

HEADROOM_VECTORISED void add(const float* __restrict a, const float* __restrict b,
                             float* __restrict y, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) y[i] = a[i] + b[i];
}

HEADROOM_VECTORISED void relu(const float* __restrict x, float* __restrict y, std::size_t begin,
                              std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) y[i] = x[i] < 0 ? 0 : x[i];  // NaN stays
}

HEADROOM_VECTORISED void relu_backward(const float* __restrict y, const float* __restrict dy,
                                       float* __restrict dx, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
}

HEADROOM_VECTORISED void leaky_relu(const float* __restrict x, float* __restrict y, float slope,
                                    std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

HEADROOM_VECTORISED void leaky_relu_backward(const float* __restrict y, const float* __restrict dy,
                                             float* __restrict dx, float slope, std::size_t begin,
                                             std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) dx[i] = y[i] > 0 ? dy[i] : slope * dy[i];
}

// Elements of the buffer in its layout, padding included.
std::size_t float_count(const Program& program, ValueId id) {
  return program.value(id).bytes / sizeof(float);
}

}  // namespace

Kernel make_add(const Op& op, const Program& program) {
  return [count = float_count(program, op.outputs[0])](const OpBuffers& buffers) {
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      // a + a: __restrict allows it, both are only read.
      add(floats(buffers.inputs[0]), floats(buffers.inputs[1]), floats(buffers.outputs[0]), begin,
          end);
    });
  };
}

Kernel make_relu(const Op& op, const Program& program) {
  return [count = float_count(program, op.outputs[0])](const OpBuffers& buffers) {
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      relu(floats(buffers.inputs[0]), floats(buffers.outputs[0]), begin, end);
    });
  };
}

Kernel make_relu_backward(const Op& op, const Program& program) {
  return [count = float_count(program, op.outputs[0])](const OpBuffers& buffers) {
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      relu_backward(floats(buffers.inputs[0]), floats(buffers.inputs[1]),
                    floats(buffers.outputs[0]), begin, end);
    });
  };
}

Kernel make_leaky_relu(const Op& op, const Program& program) {
  const auto slope = static_cast<float>(op.number("slope"));
  return [slope, count = float_count(program, op.outputs[0])](const OpBuffers& buffers) {
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      leaky_relu(floats(buffers.inputs[0]), floats(buffers.outputs[0]), slope, begin, end);
    });
  };
}

Kernel make_leaky_relu_backward(const Op& op, const Program& program) {
  const auto slope = static_cast<float>(op.number("slope"));
  return [slope, count = float_count(program, op.outputs[0])](const OpBuffers& buffers) {
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      leaky_relu_backward(floats(buffers.inputs[0]), floats(buffers.inputs[1]),
                          floats(buffers.outputs[0]), slope, begin, end);
    });
  };
}

}  // namespace headroom::host

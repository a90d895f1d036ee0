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

struct Rates {
  float learning_rate, momentum, weight_decay;
};

HEADROOM_VECTORISED void sgd_momentum(float* __restrict weight, const float* __restrict gradient,
                                      float* __restrict velocity, Rates rates, std::size_t begin,
                                      std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const float v = rates.momentum * velocity[i] + (gradient[i] + rates.weight_decay * weight[i]);
    velocity[i] = v;
    weight[i] -= rates.learning_rate * v;
  }
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

Kernel make_sgd_momentum(const Op& op, const Program& program) {
  const Rates rates = {static_cast<float>(op.number("learning_rate")),
                       static_cast<float>(op.number("momentum")),
                       static_cast<float>(op.number("weight_decay"))};
  return [rates, count = float_count(program, op.inputs[0])](const OpBuffers& buffers) {
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      sgd_momentum(floats(buffers.inputs[0]), floats(buffers.inputs[1]), floats(buffers.inputs[2]),
                   rates, begin, end);
    });
  };
}

}  // namespace headroom::host

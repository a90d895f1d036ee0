// What a linear layer has beside its products.
#pragma once

#include "harness/device/cuda/module/work/sums.h"

namespace headroom::cuda {

// db of a linear layer: sums of dy[N,O] over N.
template <typename T>
class BiasGradient {
 public:
  BiasGradient(const Op& op, const Program& program)
      : rows_(program.value(op.inputs[1]).shape[0]), width_(program.value(op.inputs[1]).shape[1]) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T* dy = elements<T>(buffers.inputs[1]);
    float* db = floats(buffers.outputs[1]);
    const Index width = width_;
    sum_columns(
        queue, rows_, width_,
        [=] HEADROOM_DEVICE(Index row, Index column) {
          return Sums{load(dy[row * width + column]), 0};
        },
        [=] HEADROOM_DEVICE(Index c, Sums sums) { db[c] = static_cast<float>(sums.first); });
  }

 private:
  Index rows_, width_;
};

template <typename Queue>
Work<Queue> bias_gradient_work(const Op& op, const Program& program) {
  return make_typed<BiasGradient, Queue>(op, program);
}

}  // namespace headroom::cuda

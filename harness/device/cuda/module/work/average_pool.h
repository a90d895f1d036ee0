// The mean of each channel of each image.
#pragma once

#include "harness/device/cuda/module/work/sums.h"

namespace headroom::cuda {

template <typename T>
struct InDouble {
  const T* x;
  Index width;
  HEADROOM_DEVICE double operator()(Index row, Index column) const {
    return load(x[row * width + column]);
  }
};

template <typename T>
class AveragePool {
 public:
  AveragePool(const Op& op, const Program& program)
      : planes_(count_of(program, op.outputs[0])),
        plane_(count_of(program, op.inputs[0]) / planes_) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    T* y = elements<T>(buffers.outputs[0]);
    auto* sums = queue.template scratch<double>(planes_);
    queue.reduce_rows(planes_, plane_, InDouble<T>{elements<T>(buffers.inputs[0]), plane_}, Add{},
                      0.0, sums);
    queue.for_each(planes_, [=, *this] HEADROOM_DEVICE(Index i) {
      store(y[i], static_cast<float>(sums[i] / static_cast<double>(plane_)));
    });
  }

 private:
  Index planes_, plane_;
};

template <typename T>
class AveragePoolBackward {
 public:
  AveragePoolBackward(const Op& op, const Program& program)
      : count_(count_of(program, op.outputs[0])),
        plane_(count_ / count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T* dy = elements<T>(buffers.inputs[0]);
    T* dx = elements<T>(buffers.outputs[0]);
    queue.for_each(count_, [=, *this] HEADROOM_DEVICE(Index i) {
      store(dx[i], load(dy[i / plane_]) / static_cast<float>(plane_));
    });
  }

 private:
  Index count_;
  Divisor plane_;
};

template <typename Queue>
Works<Queue> average_pool_works() {
  return {
      {"global_average_pool", make_typed<AveragePool, Queue>},
      {"global_average_pool_backward", make_typed<AveragePoolBackward, Queue>},
  };
}

}  // namespace headroom::cuda

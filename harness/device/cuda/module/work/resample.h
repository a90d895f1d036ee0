// Upsampling by repeating pixels and downsampling by summing them.
#pragma once

#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

struct Resampling {
  Index count;            // all elements of y
  Divisor height, width;  // of y
  Index row;              // elements in a row of x
  Index plane;            // elements in an image of x
  Divisor factor;
  float scale;

  Resampling(const Op& op, const Program& program)
      : count(count_of(program, op.outputs[0])),
        height(program.value(op.outputs[0]).shape[2]),
        width(program.value(op.outputs[0]).shape[3]),
        row(program.value(op.inputs[0]).shape[3]),
        plane(program.value(op.inputs[0]).shape[2] * row),
        factor(op.integer("factor")),
        scale(static_cast<float>(op.number("scale"))) {}
};

template <typename T>
class Upsample {
 public:
  Upsample(const Op& op, const Program& program) : r_(op, program) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T* x = elements<T>(buffers.inputs[0]);
    T* y = elements<T>(buffers.outputs[0]);
    const Resampling r = r_;
    queue.for_each(r.count, [=] HEADROOM_DEVICE(Index i) {
      const Index of_all = i / r.width, column = i % r.width, line = of_all % r.height;
      const Index of_x = of_all / r.height * r.plane + line / r.factor * r.row + column / r.factor;
      store(y[i], r.scale * load(x[of_x]));
    });
  }

 private:
  Resampling r_;
};

template <typename T>
class SumPool {
 public:
  SumPool(const Op& op, const Program& program) : r_(op, program) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T* x = elements<T>(buffers.inputs[0]);
    T* y = elements<T>(buffers.outputs[0]);
    const Resampling r = r_;
    queue.for_each(r.count, [=] HEADROOM_DEVICE(Index i) {
      const Index of_all = i / r.width, column = i % r.width, line = of_all % r.height;
      const T* first =
          x + of_all / r.height * r.plane + line * r.factor * r.row + column * r.factor;
      float sum = 0;
      for (Index h = 0; h < r.factor; ++h)
        for (Index w = 0; w < r.factor; ++w) sum += load(first[h * r.row + w]);
      store(y[i], r.scale * sum);
    });
  }

 private:
  Resampling r_;
};

template <typename Queue>
Works<Queue> resample_works() {
  return {
      {"sum_pool", make_typed<SumPool, Queue>},
      {"upsample", make_typed<Upsample, Queue>},
  };
}

}  // namespace headroom::cuda

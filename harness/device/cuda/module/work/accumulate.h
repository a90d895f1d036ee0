// Ops that add to or scale weights, gradients and statistics in place.
#pragma once

#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

class Accumulate {
 public:
  Accumulate(const Op& op, const Program& program)
      : scale_(static_cast<float>(op.number("scale"))),
        starts_(op.integer("start") == 1),
        weighted_(op.inputs.size() == 3),
        count_(count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float* sum = floats(buffers.inputs[0]);
    const float* gradient = floats(buffers.inputs[1]);
    const float* weight = weighted_ ? floats(buffers.inputs[2]) : nullptr;
    queue.for_each(count_, [=, *this] HEADROOM_DEVICE(Index i) {
      const float more = scale_ * (weight == nullptr ? 1.0F : *weight) * gradient[i];
      sum[i] = starts_ ? more : sum[i] + more;
    });
  }

 private:
  float scale_;
  bool starts_, weighted_;
  Index count_;
};

class Divide {
 public:
  Divide(const Op& op, const Program& program) : count_(count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float* x = floats(buffers.inputs[0]);
    const float* divisor = floats(buffers.inputs[1]);
    queue.for_each(count_, [=] HEADROOM_DEVICE(Index i) {
      if (*divisor != 0) x[i] /= *divisor;  // a sum over nothing stays 0
    });
  }

 private:
  Index count_;
};

// x = x y, where y holds one number or as many as x.
template <bool kOneFactor>
class Multiply {
 public:
  Multiply(const Op& op, const Program& program) : count_(count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float* x = floats(buffers.inputs[0]);
    const float* y = floats(buffers.inputs[1]);
    queue.for_each(count_, [=] HEADROOM_DEVICE(Index i) { x[i] *= y[kOneFactor ? 0 : i]; });
  }

 private:
  Index count_;
};

class UpdateStatistics {
 public:
  UpdateStatistics(const Op& op, const Program& program)
      : momentum_(static_cast<float>(op.number("momentum"))),
        unbiased_(static_cast<float>(static_cast<double>(op.integer("count")) /
                                     static_cast<double>(op.integer("count") - 1))),
        channels_(count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float *running_mean = floats(buffers.inputs[0]), *running_variance = floats(buffers.inputs[1]);
    const float *mean = floats(buffers.inputs[2]), *variance = floats(buffers.inputs[3]);
    queue.for_each(channels_, [=, *this] HEADROOM_DEVICE(Index c) {
      running_mean[c] = (1 - momentum_) * running_mean[c] + momentum_ * mean[c];
      running_variance[c] =
          (1 - momentum_) * running_variance[c] + momentum_ * unbiased_ * variance[c];
    });
  }

 private:
  float momentum_, unbiased_;
  Index channels_;
};

template <typename Queue>
Works<Queue> accumulate_works() {
  return {
      {"accumulate", make<Accumulate, Queue>},
      {"apply_mask", make<Multiply<false>, Queue>},
      {"divide", make<Divide, Queue>},
      {"scale_gradient", make<Multiply<true>, Queue>},
      {"update_statistics", make<UpdateStatistics, Queue>},
  };
}

}  // namespace headroom::cuda

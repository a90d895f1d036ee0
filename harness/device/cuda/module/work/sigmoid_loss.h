// The loss of a discriminator.
#pragma once

#include <cmath>

#include "harness/device/cuda/module/work/sums.h"

namespace headroom::cuda {

// Computed before the sum, whose kernel has too few registers for a logarithm in double.
struct SigmoidLoss {
  const float* logits;
  double target;
  double* losses;
  // -log sigmoid(x) = log(1 + e^-x), shifted so that nothing overflows.
  HEADROOM_DEVICE void operator()(Index i) const {
    const double x = logits[i];
    losses[i] = (x < 0 ? 0 : x) - x * target + std::log1p(std::exp(x < 0 ? x : -x));
  }
};

struct DoubleAt {
  const double* numbers;
  HEADROOM_DEVICE double operator()(Index i) const { return numbers[i]; }
};

class SigmoidCrossEntropy {
 public:
  SigmoidCrossEntropy(const Op& op, const Program& program)
      : target_(op.number("target")), count_(count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float* loss = floats(buffers.outputs[0]);
    auto* sum = queue.template scratch<double>(1);
    auto* losses = queue.template scratch<double>(count_);
    queue.for_each(count_, SigmoidLoss{floats(buffers.inputs[0]), target_, losses});
    queue.reduce(count_, DoubleAt{losses}, Add{}, 0.0, sum);
    queue.for_each(1, [=, *this] HEADROOM_DEVICE(Index) {
      *loss = static_cast<float>(*sum / static_cast<double>(count_));
    });
  }

 private:
  double target_;
  Index count_;
};

class SigmoidCrossEntropyBackward {
 public:
  SigmoidCrossEntropyBackward(const Op& op, const Program& program)
      : target_(op.number("target")), count_(count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const float* logits = floats(buffers.inputs[0]);
    float* gradient = floats(buffers.outputs[0]);
    queue.for_each(count_, [=, *this] HEADROOM_DEVICE(Index i) {
      const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(logits[i])));
      gradient[i] = static_cast<float>((sigmoid - target_) / static_cast<double>(count_));
    });
  }

 private:
  double target_;
  Index count_;
};

template <typename Queue>
Works<Queue> sigmoid_loss_works() {
  return {
      {"sigmoid_cross_entropy", make<SigmoidCrossEntropy, Queue>},
      {"sigmoid_cross_entropy_backward", make<SigmoidCrossEntropyBackward, Queue>},
  };
}

}  // namespace headroom::cuda

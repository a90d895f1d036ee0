// Optimizer rules, element by element and in place.
// Numbers that change from step to step (steps, factors, loss scales) are read on the device, so
// the host does not wait for them.
#pragma once

#include <cmath>

#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

inline float rate_of(const Op& op, const char* key) { return static_cast<float>(op.number(key)); }

class SgdMomentum {
 public:
  SgdMomentum(const Op& op, const Program& program)
      : rate_(rate_of(op, "learning_rate")),
        momentum_(rate_of(op, "momentum")),
        weight_decay_(rate_of(op, "weight_decay")),
        count_(count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float *weight = floats(buffers.inputs[0]), *velocity = floats(buffers.inputs[2]);
    const float* gradient = floats(buffers.inputs[1]);
    queue.for_each(count_, [=, *this] HEADROOM_DEVICE(Index i) {
      const float v = momentum_ * velocity[i] + (gradient[i] + weight_decay_ * weight[i]);
      velocity[i] = v;
      weight[i] -= rate_ * v;
    });
  }

 private:
  float rate_, momentum_, weight_decay_;
  Index count_;
};

// 1 / (1 - beta^steps): corrects the bias of states that start at zero.
struct AdamCorrections {
  float mean, square;
};
HEADROOM_DEVICE inline AdamCorrections adam_corrections(double beta1, double beta2, float steps) {
  return {static_cast<float>(1 / (1 - std::pow(beta1, static_cast<double>(steps)))),
          static_cast<float>(1 / (1 - std::pow(beta2, static_cast<double>(steps))))};
}

struct AdamRule {
  float rate, beta1, beta2, new_mean, new_square, epsilon, weight_decay;

  explicit AdamRule(const Op& op)
      : rate(rate_of(op, "learning_rate")),
        beta1(rate_of(op, "beta1")),
        beta2(rate_of(op, "beta2")),
        new_mean(static_cast<float>(1 - op.number("beta1"))),
        new_square(static_cast<float>(1 - op.number("beta2"))),
        epsilon(rate_of(op, "epsilon")),
        weight_decay(rate_of(op, "weight_decay")) {}

  // The weight after a step from the states `mean` and `square` of this step.
  HEADROOM_DEVICE float step(float weight, float mean, float square, AdamCorrections by) const {
    const float direction = mean * by.mean / (std::sqrt(square * by.square) + epsilon);
    return weight - rate * (direction + weight_decay * weight);
  }
};

class Adam {
 public:
  Adam(const Op& op, const Program& program)
      : rule_(op),
        beta1_(op.number("beta1")),
        beta2_(op.number("beta2")),
        count_(count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float* weight = floats(buffers.inputs[0]);
    const float* gradient = floats(buffers.inputs[1]);
    float *mean = floats(buffers.inputs[2]), *square = floats(buffers.inputs[3]);
    const float* steps = floats(buffers.inputs[4]);
    auto* corrections = queue.template scratch<AdamCorrections>(1);
    queue.for_each(1, [=, *this] HEADROOM_DEVICE(Index) {
      *corrections = adam_corrections(beta1_, beta2_, *steps);
    });
    queue.for_each(count_, [=, *this] HEADROOM_DEVICE(Index i) {
      const float g = gradient[i];
      mean[i] = rule_.beta1 * mean[i] + rule_.new_mean * g;
      square[i] = rule_.beta2 * square[i] + rule_.new_square * g * g;
      weight[i] = rule_.step(weight[i], mean[i], square[i], *corrections);
    });
  }

 private:
  AdamRule rule_;
  double beta1_, beta2_;
  Index count_;
};

class CountStep {
 public:
  CountStep(const Op&, const Program&) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float* steps = floats(buffers.inputs[0]);
    queue.for_each(1, [=] HEADROOM_DEVICE(Index) { *steps += 1; });
  }
};

template <typename Queue>
Works<Queue> update_works() {
  return {
      {"adam", make<Adam, Queue>},
      {"count_step", make<CountStep, Queue>},
      {"sgd_momentum", make<SgdMomentum, Queue>},
  };
}

}  // namespace headroom::cuda

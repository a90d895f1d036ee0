// Optimizer rules and what is done to gradients before them, element by element and in place.
// Numbers that change from step to step (steps, factors, loss scales) are read on the device:
// nobody waits for them.
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

// 1 / (1 - beta^steps): what makes up for states that began at zero.
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

class Accumulate {
 public:
  Accumulate(const Op& op, const Program& program)
      : scale_(rate_of(op, "scale")),
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

// x = x y where y is one number or as many as x.
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
      : momentum_(rate_of(op, "momentum")),
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
Works<Queue> update_works() {
  return {
      {"accumulate", make<Accumulate, Queue>},
      {"adam", make<Adam, Queue>},
      {"apply_mask", make<Multiply<false>, Queue>},
      {"count_step", make<CountStep, Queue>},
      {"divide", make<Divide, Queue>},
      {"scale_gradient", make<Multiply<true>, Queue>},
      {"sgd_momentum", make<SgdMomentum, Queue>},
      {"update_statistics", make<UpdateStatistics, Queue>},
  };
}

}  // namespace headroom::cuda

// Optimizer rules, element by element and in place.
// Numbers that change from step to step (steps, factors, loss scales) are read on the device, so
// the host does not wait for them.
#pragma once

#include <cmath>

#include "harness/device/cuda/module/work/map.h"

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
    constexpr int kEach = kNeighbours<float, float>;
    queue.for_each((count_ + kEach - 1) / kEach, [=, *this] HEADROOM_DEVICE(Index group) {
      const Index first = group * kEach, left = count_ - first;
      Neighbours<float, kEach> w{}, g{}, v{};
      w.load(weight + first, left);
      g.load(gradient + first, left);
      v.load(velocity + first, left);
      for (int k = 0; k < kEach; ++k) {
        v.of[k] = momentum_ * v.of[k] + (g.of[k] + weight_decay_ * w.of[k]);
        w.of[k] -= rate_ * v.of[k];
      }
      w.store(weight + first, left);
      v.store(velocity + first, left);
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

struct AdamRule {
  float rate, beta1, beta2, log_beta1, log_beta2, new_mean, new_square, epsilon, weight_decay;

  explicit AdamRule(const Op& op)
      : rate(rate_of(op, "learning_rate")),
        beta1(rate_of(op, "beta1")),
        beta2(rate_of(op, "beta2")),
        log_beta1(static_cast<float>(std::log(op.number("beta1")))),
        log_beta2(static_cast<float>(std::log(op.number("beta2")))),
        new_mean(static_cast<float>(1 - op.number("beta1"))),
        new_square(static_cast<float>(1 - op.number("beta2"))),
        epsilon(rate_of(op, "epsilon")),
        weight_decay(rate_of(op, "weight_decay")) {}

  HEADROOM_DEVICE AdamCorrections corrections(float steps) const {
    return {-1 / std::expm1(steps * log_beta1), -1 / std::expm1(steps * log_beta2)};
  }
  // The weight after a step from the states `mean` and `square` of this step.
  HEADROOM_DEVICE float step(float weight, float mean, float square, AdamCorrections by) const {
    const float direction = mean * by.mean / (std::sqrt(square * by.square) + epsilon);
    return weight - rate * (direction + weight_decay * weight);
  }
};

class Adam {
 public:
  Adam(const Op& op, const Program& program) : rule_(op), count_(count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float* weight = floats(buffers.inputs[0]);
    const float* gradient = floats(buffers.inputs[1]);
    float *mean = floats(buffers.inputs[2]), *square = floats(buffers.inputs[3]);
    const float* steps = floats(buffers.inputs[4]);
    constexpr int kEach = kNeighbours<float, float>;
    queue.for_each((count_ + kEach - 1) / kEach, [=, *this] HEADROOM_DEVICE(Index group) {
      const AdamCorrections by = rule_.corrections(*steps);
      const Index first = group * kEach, left = count_ - first;
      Neighbours<float, kEach> w{}, g{}, m{}, s{};
      w.load(weight + first, left);
      g.load(gradient + first, left);
      m.load(mean + first, left);
      s.load(square + first, left);
      for (int k = 0; k < kEach; ++k) {
        m.of[k] = rule_.beta1 * m.of[k] + rule_.new_mean * g.of[k];
        s.of[k] = rule_.beta2 * s.of[k] + rule_.new_square * g.of[k] * g.of[k];
        w.of[k] = rule_.step(w.of[k], m.of[k], s.of[k], by);
      }
      w.store(weight + first, left);
      m.store(mean + first, left);
      s.store(square + first, left);
    });
  }

 private:
  AdamRule rule_;
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

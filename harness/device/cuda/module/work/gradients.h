// Properties of all gradients together: their norm, and whether they overflowed.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "harness/device/cuda/module/work/sums.h"

namespace headroom::cuda {

struct SquareOf {
  const float* x;
  HEADROOM_DEVICE double operator()(Index i) const { return double{x[i]} * x[i]; }
};

// x - x is 0 for every finite number, but NaN for infinities and NaN.
struct IsNotFinite {
  const float* x;
  HEADROOM_DEVICE Index operator()(Index i) const { return x[i] - x[i] != 0 ? 1 : 0; }
};

inline std::vector<Index> counts_of(const Program& program, std::span<const ValueId> ids) {
  std::vector<Index> counts;
  for (const ValueId id : ids) counts.push_back(count_of(program, id));
  return counts;
}

class ClipFactor {
 public:
  ClipFactor(const Op& op, const Program& program)
      : counts_(counts_of(program, op.inputs)), limit_(op.number("largest_norm")) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const auto gradients = static_cast<Index>(counts_.size());
    auto* squares = queue.template scratch<double>(gradients);
    for (std::size_t i = 0; i < counts_.size(); ++i)
      queue.reduce(counts_[i], SquareOf{floats(buffers.inputs[i])}, Add{}, 0.0, squares + i);
    float* factor = floats(buffers.outputs[0]);
    const double limit = limit_;
    queue.for_each(1, [=] HEADROOM_DEVICE(Index) {
      double sum = 0;
      for (Index i = 0; i < gradients; ++i) sum += squares[i];
      const double norm = std::sqrt(sum);
      *factor = norm > limit ? static_cast<float>(limit / norm) : 1.0F;
    });
  }

 private:
  std::vector<Index> counts_;
  double limit_;
};

class CheckGradients {
 public:
  CheckGradients(const Op& op, const Program& program)
      : counts_(counts_of(program, std::span(op.inputs).subspan(1))) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const auto gradients = static_cast<Index>(counts_.size());
    auto* found = queue.template scratch<Index>(gradients);
    for (std::size_t i = 0; i < counts_.size(); ++i)
      queue.reduce(counts_[i], IsNotFinite{floats(buffers.inputs[i + 1])}, Add{}, Index{0},
                   found + i);
    const float* scale = floats(buffers.inputs[0]);
    float *overflow = floats(buffers.outputs[0]), *inverse = floats(buffers.outputs[1]);
    queue.for_each(1, [=] HEADROOM_DEVICE(Index) {
      Index sum = 0;
      for (Index i = 0; i < gradients; ++i) sum += found[i];
      *overflow = sum == 0 ? 0.0F : 1.0F;
      *inverse = 1 / *scale;
    });
  }

 private:
  std::vector<Index> counts_;
};

class AdjustLossScale {
 public:
  AdjustLossScale(const Op& op, const Program&)
      : growth_(static_cast<float>(op.number("growth"))),
        backoff_(static_cast<float>(op.number("backoff"))),
        interval_(static_cast<float>(op.integer("growth_interval"))) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const float* overflow = floats(buffers.inputs[0]);
    float *scale = floats(buffers.inputs[1]), *good_steps = floats(buffers.inputs[2]);
    float* skipped = floats(buffers.inputs[3]);
    queue.for_each(1, [=, *this] HEADROOM_DEVICE(Index) {
      if (*overflow != 0) {
        *scale *= backoff_;
        *good_steps = 0;
        *skipped += 1;
      } else if (++*good_steps >= interval_) {
        *scale *= growth_;
        *good_steps = 0;
      }
    });
  }

 private:
  float growth_, backoff_, interval_;
};

template <typename Queue>
Works<Queue> gradient_works() {
  return {
      {"adjust_loss_scale", make<AdjustLossScale, Queue>},
      {"check_gradients", make<CheckGradients, Queue>},
      {"clip_factor", make<ClipFactor, Queue>},
  };
}

}  // namespace headroom::cuda

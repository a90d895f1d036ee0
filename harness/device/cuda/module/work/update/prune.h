// Masks over weights. Only the device knows whether a step is due, so magnitudes are sorted at
// every step, and the mask is left unchanged when none is due.
#pragma once

#include <algorithm>
#include <cmath>

#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

struct PruningSchedule {
  double initial, final, begin, end, every;

  HEADROOM_DEVICE bool is_due(double step) const {
    return step >= begin && step <= end && std::fmod(step - begin, every) == 0;
  }
  // Zhu and Gupta 2017, equation 1; at least one element stays.
  HEADROOM_DEVICE Index pruned_at(double step, Index count) const {
    const double left = end > begin ? (end - step) / (end - begin) : 0;
    const double share = final + (initial - final) * left * left * left;
    const auto pruned = static_cast<Index>(std::llround(share * static_cast<double>(count)));
    return pruned < count ? pruned : count - 1;
  }
};

class MagnitudeMask {
 public:
  MagnitudeMask(const Op& op, const Program& program)
      : schedule_{op.number("initial"), op.number("final"),
                  static_cast<double>(op.integer("begin")), static_cast<double>(op.integer("end")),
                  static_cast<double>(op.integer("every"))},
        count_(count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const float *weight = floats(buffers.inputs[0]), *steps = floats(buffers.inputs[2]);
    float *mask = floats(buffers.inputs[1]), *sizes = floats(buffers.outputs[0]);
    auto* sorted = queue.template scratch<float>(count_);
    queue.for_each(count_, [=] HEADROOM_DEVICE(Index i) { sizes[i] = std::fabs(weight[i]); });
    queue.sort(sizes, sorted, count_);
    queue.for_each(count_, [=, *this] HEADROOM_DEVICE(Index i) {
      if (!schedule_.is_due(*steps)) return;
      const Index pruned = schedule_.pruned_at(*steps, count_);
      if (pruned == 0) return;
      mask[i] = sizes[i] >= sorted[pruned] && sizes[i] > 0 ? 1.0F : 0.0F;
    });
  }

 private:
  PruningSchedule schedule_;
  Index count_;
};

class TwoOfFourMask {
 public:
  TwoOfFourMask(const Op& op, const Program& program)
      : begin_(static_cast<float>(op.integer("begin"))),
        count_(count_of(program, op.inputs[0])),
        apart_(count_ /
               (program.value(op.inputs[0]).shape[0] * program.value(op.inputs[0]).shape[1])),
        columns_(program.value(op.inputs[0]).shape[1]) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const float *weight = floats(buffers.inputs[0]), *steps = floats(buffers.inputs[2]);
    float* mask = floats(buffers.inputs[1]);
    queue.for_each(count_, [=, *this] HEADROOM_DEVICE(Index i) {
      if (*steps != begin_) return;
      const Index place = i / apart_ % columns_ % 4;
      int ahead = 0;  // elements before this one in its group, by magnitude and then by position
      for (Index k = 0; k < 4; ++k) {
        const float other = std::fabs(weight[i + (k - place) * apart_]);
        const float own = std::fabs(weight[i]);
        if (other > own || (other == own && k < place)) ++ahead;
      }
      mask[i] = ahead < 2 ? 1.0F : 0.0F;
    });
  }

 private:
  float begin_;
  Index count_;
  Divisor apart_, columns_;
};

template <typename Queue>
Works<Queue> prune_works() {
  return {
      {"magnitude_mask", make<MagnitudeMask, Queue>},
      {"two_of_four_mask", make<TwoOfFourMask, Queue>},
  };
}

}  // namespace headroom::cuda

// Adam with 8-bit states (Dettmers et al. 2022). A new scale is the largest magnitude of its block,
// so states are computed twice: for the scales, and to be stored with them.
#pragma once

#include <cmath>

#include "harness/device/cuda/module/work/update/update.h"

namespace headroom::cuda {

// The dynamic 8-bit numbers in ascending order: 0, 1, and the midpoints of equal parts of each
// decade down to 1e-7, where each decade has half as many parts as the one above it. Signed numbers
// give half of the parts to each sign.
HEADROOM_DEVICE inline double dynamic_number(int code, bool is_signed) {
  const int zero = is_signed ? 127 : 0;
  if (code == zero) return 0;
  if (code == 255) return 1;
  int part = code > zero ? code - zero - 1 : zero - code - 1;  // counted from zero
  int parts = is_signed ? 1 : 2;
  double power = 1e-6;
  for (; part >= parts; parts *= 2, power *= 10) part -= parts;
  // Powers below 1 are each rounded to the nearest double, not computed as a product.
  const double decade = power < 0.5 ? 1 / std::round(1 / power) : 1.0;
  const double number = decade * (0.1 + 0.9 * (part + 0.5) / parts);
  return code > zero ? number : -number;
}

struct DynamicNumbers {
  const float* numbers;  // 256

  HEADROOM_DEVICE float operator[](std::uint8_t code) const { return numbers[code]; }
  // The first code whose midpoint to the next code is not below x.
  HEADROOM_DEVICE std::uint8_t nearest(float x) const {
    int low = 0, high = 255;
    while (low < high) {
      const int middle = (low + high) / 2;
      if ((numbers[middle] + numbers[middle + 1]) / 2 < x)
        low = middle + 1;
      else
        high = middle;
    }
    return static_cast<std::uint8_t>(low);
  }
};

struct State8bit {
  std::uint8_t* codes;
  float* scales;
  DynamicNumbers numbers;

  HEADROOM_DEVICE float at(Index i, const Divisor& block) const {
    return numbers[codes[i]] * scales[i / block];
  }
  HEADROOM_DEVICE void keep(Index i, float value, float scale) const {
    codes[i] = numbers.nearest(scale > 0 ? value / scale : 0);
  }
};

struct Scales {
  float mean, square;
};
struct Larger {
  HEADROOM_DEVICE Scales operator()(Scales a, Scales b) const {
    return {a.mean < b.mean ? b.mean : a.mean, a.square < b.square ? b.square : a.square};
  }
};

struct Adam8bitStep {
  AdamRule rule;
  const float* gradient;
  State8bit mean, square;
  Index count;
  Divisor block;

  HEADROOM_DEVICE float mean_of(Index i) const {
    return rule.beta1 * mean.at(i, block) + rule.new_mean * gradient[i];
  }
  HEADROOM_DEVICE float square_of(Index i) const {
    return rule.beta2 * square.at(i, block) + rule.new_square * gradient[i] * gradient[i];
  }
  // The last block may be short.
  HEADROOM_DEVICE Scales operator()(Index row, Index column) const {
    const Index i = row * block + column;
    if (i >= count) return {0, 0};
    return {std::fabs(mean_of(i)), std::fabs(square_of(i))};
  }
};

class Adam8bit {
 public:
  Adam8bit(const Op& op, const Program& program)
      : rule_(op), count_(count_of(program, op.inputs[0])), block_(op.integer("block")) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float* weight = floats(buffers.inputs[0]);
    const float* steps = floats(buffers.inputs[6]);
    auto* numbers = queue.template scratch<float>(512);
    auto* corrections = queue.template scratch<AdamCorrections>(1);
    queue.for_each(512, [=] HEADROOM_DEVICE(Index i) {
      numbers[i] = static_cast<float>(dynamic_number(static_cast<int>(i % 256), i < 256));
    });
    queue.for_each(1,
                   [=, *this] HEADROOM_DEVICE(Index) { *corrections = rule_.corrections(*steps); });
    const Adam8bitStep step = {
        rule_,
        floats(buffers.inputs[1]),
        {elements<std::uint8_t>(buffers.inputs[2]), floats(buffers.inputs[3]), {numbers}},
        {elements<std::uint8_t>(buffers.inputs[4]), floats(buffers.inputs[5]), {numbers + 256}},
        count_,
        block_};
    const Index blocks = (count_ + block_ - 1) / block_;
    auto* scales = queue.template scratch<Scales>(blocks);
    queue.reduce_rows(blocks, block_, step, Larger{}, Scales{0, 0}, scales);
    queue.for_each(count_, [=, *this] HEADROOM_DEVICE(Index i) {
      const float mean = step.mean_of(i), square = step.square_of(i);
      weight[i] = rule_.step(weight[i], mean, square, *corrections);
      step.mean.keep(i, mean, scales[i / block_].mean);
      step.square.keep(i, square, scales[i / block_].square);
    });
    queue.for_each(blocks, [=] HEADROOM_DEVICE(Index b) {
      step.mean.scales[b] = scales[b].mean;
      step.square.scales[b] = scales[b].square;
    });
  }

 private:
  AdamRule rule_;
  Index count_;
  Divisor block_;
};

template <typename Queue>
Works<Queue> adam8bit_works() {
  return {{"adam8bit", make<Adam8bit, Queue>}};
}

}  // namespace headroom::cuda

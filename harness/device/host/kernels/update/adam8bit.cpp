// Adam with 8-bit states, one block at a time: dequantise, update, apply, quantise again.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "harness/base/error.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"
#include "harness/device/host/kernels/row_major.h"

namespace headroom::host {
namespace {

// The 256 dynamic numbers of Dettmers et al. 2022 in ascending order: 0, 1 and the midpoints of
// equal parts of each decade down to 1e-7, where each decade has half as many parts as the one
// above it. In the signed version each sign has half of the parts.
class DynamicNumbers {
 public:
  explicit DynamicNumbers(bool is_signed) {
    std::size_t count = 0;
    numbers_[count++] = 0;
    numbers_[count++] = 1;
    for (int decade = 0; decade < 7; ++decade) {
      const int parts = (is_signed ? 64 : 128) >> decade;
      for (int part = 0; part < parts; ++part) {
        const double number = std::pow(10, -decade) * (0.1 + 0.9 * (part + 0.5) / parts);
        numbers_[count++] = static_cast<float>(number);
        if (is_signed) numbers_[count++] = static_cast<float>(-number);
      }
    }
    std::sort(numbers_.begin(), numbers_.end());
    for (std::size_t i = 0; i + 1 < numbers_.size(); ++i)
      middles_[i] = (numbers_[i] + numbers_[i + 1]) / 2;
    middles_.back() = std::numeric_limits<float>::infinity();
    find_first_codes();
  }

  const float* numbers() const { return numbers_.data(); }

  // Computes the codes of the numbers nearest to values / scale, which lie within [-1, 1].
  HEADROOM_VECTORISED void quantise(const float* __restrict values, float scale,
                                    std::uint8_t* __restrict codes, std::size_t count) const {
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) {
      const float x = values[i] / scale;
      const std::int32_t code = first_codes_[std::bit_cast<std::uint32_t>(x) >> 16];
      codes[i] = static_cast<std::uint8_t>(code + (middles_[code] < x ? 1 : 0));
    }
  }

 private:
  // The upper half of a float determines its code up to a difference of one: with seven fraction
  // bits, no two midpoints share an upper half.
  void find_first_codes() {
    const auto below = [this](float x) {
      return std::lower_bound(middles_.begin(), middles_.end(), x) - middles_.begin();
    };
    for (std::uint32_t upper = 0; upper < first_codes_.size(); ++upper) {
      const auto least = std::bit_cast<float>(upper << 16),
                 most = std::bit_cast<float>(upper << 16 | 0xFFFFU);
      if (!(std::abs(most) <= 1 || least == 1)) continue;  // never looked up, or not a number
      const auto first = below(std::min(least, most)), last = below(std::max(least, most));
      if (last > first + 1) throw Error("adam8bit: two codes cannot be told apart");
      first_codes_[upper] = static_cast<std::int32_t>(first);
    }
  }

  std::array<float, 256> numbers_;
  std::array<float, 256> middles_;  // midpoints of neighbouring numbers; the last number has none
  std::array<std::int32_t, 1 << 16> first_codes_{};
};

constexpr std::size_t kLongestBlock = 4096;  // the maximum that the shape rule accepts

struct Adam8bitRule {
  float learning_rate, beta1, beta2, new_mean, new_square, epsilon, weight_decay;
};
// Bias corrections for states that start at zero.
struct Corrections {
  float mean, square;
};

HEADROOM_VECTORISED void widen(const std::uint8_t* __restrict codes,
                               const float* __restrict numbers, float scale,
                               float* __restrict values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = numbers[codes[i]] * scale;
}

HEADROOM_VECTORISED void update(float* __restrict weight, const float* __restrict gradient,
                                float* __restrict mean, float* __restrict square, Adam8bitRule rule,
                                Corrections corrections, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i];
    mean[i] = rule.beta1 * mean[i] + rule.new_mean * g;
    square[i] = rule.beta2 * square[i] + rule.new_square * g * g;
    const float step = mean[i] * corrections.mean /
                       (__builtin_sqrtf(square[i] * corrections.square) + rule.epsilon);
    weight[i] -= rule.learning_rate * (step + rule.weight_decay * weight[i]);
  }
}

HEADROOM_VECTORISED float largest_magnitude(const float* values, std::size_t count) {
  float largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::size_t i = 0; i < count; ++i) {
    const float magnitude = __builtin_fabsf(values[i]);
    largest = largest < magnitude ? magnitude : largest;
  }
  return largest;
}

struct State {
  std::uint8_t* codes;
  float* scales;
  const DynamicNumbers& numbers;

  void read(std::size_t block, std::size_t begin, float* values, std::size_t count) const {
    widen(codes + begin, numbers.numbers(), scales[block], values, count);
  }
  void keep(std::size_t block, std::size_t begin, float* values, std::size_t count) const {
    const float scale = largest_magnitude(values, count);
    scales[block] = scale;
    if (!(scale > 0)) std::fill_n(values, count, 0.0F);
    numbers.quantise(values, scale > 0 ? scale : 1.0F, codes + begin, count);
  }
};

struct Update {
  Adam8bitRule rule;
  double beta1, beta2;
  RowMajor elements;
  std::size_t block;

  void run(const OpBuffers& buffers) const {
    static const DynamicNumbers means(true), squares(false);
    const double steps = *floats(buffers.inputs[6]);
    const Corrections corrections = {static_cast<float>(1 / (1 - std::pow(beta1, steps))),
                                     static_cast<float>(1 / (1 - std::pow(beta2, steps)))};
    float* weight = floats(buffers.inputs[0]);
    const float* gradient = floats(buffers.inputs[1]);
    const auto bytes = [&](std::size_t i) {
      return reinterpret_cast<std::uint8_t*>(buffers.inputs[i]);
    };
    const State mean = {bytes(2), floats(buffers.inputs[3]), means};
    const State square = {bytes(4), floats(buffers.inputs[5]), squares};
    const std::size_t blocks = (elements.size() + block - 1) / block;
    const std::size_t grain = std::max<std::size_t>(1, kPartFloats / block);
    in_parallel(blocks, grain, [&](std::size_t first, std::size_t last) {
      std::array<float, kLongestBlock> m, s, gathered_weight, gathered_gradient;
      for (std::size_t b = first; b < last; ++b) {
        const std::size_t begin = b * block;
        const std::size_t count = std::min(elements.size(), begin + block) - begin;
        mean.read(b, begin, m.data(), count);
        square.read(b, begin, s.data(), count);
        float* w = elements.open(weight, begin, count, gathered_weight.data());
        update(w, elements.open(gradient, begin, count, gathered_gradient.data()), m.data(),
               s.data(), rule, corrections, count);
        elements.close(weight, begin, count, w);
        mean.keep(b, begin, m.data(), count);
        square.keep(b, begin, s.data(), count);
      }
    });
  }
};

}  // namespace

Kernel make_adam8bit(const Op& op, const Program& program) {
  const auto number = [&](const char* name) { return static_cast<float>(op.number(name)); };
  const Update update = {.rule = {.learning_rate = number("learning_rate"),
                                  .beta1 = number("beta1"),
                                  .beta2 = number("beta2"),
                                  .new_mean = static_cast<float>(1 - op.number("beta1")),
                                  .new_square = static_cast<float>(1 - op.number("beta2")),
                                  .epsilon = number("epsilon"),
                                  .weight_decay = number("weight_decay")},
                         .beta1 = op.number("beta1"),
                         .beta2 = op.number("beta2"),
                         .elements = RowMajor(program.value(op.inputs[0])),
                         .block = static_cast<std::size_t>(op.integer("block"))};
  return [update](const OpBuffers& buffers) { update.run(buffers); };
}

}  // namespace headroom::host

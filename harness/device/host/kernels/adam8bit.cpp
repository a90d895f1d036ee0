// Adam over 8-bit states, a block at a time: widened, updated, used, quantised again.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"
#include "harness/program/onednn/places.h"

namespace headroom::host {
namespace {

// The 256 dynamic numbers of Dettmers et al. 2022 in ascending order: each decade down to 1e-7 in
// half as many equal parts as the one above it, the middle of each part; 0 and 1. Signed ones give
// half of the parts to each sign.
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
    for (std::size_t i = 0; i < middles_.size(); ++i)
      middles_[i] = (numbers_[i] + numbers_[i + 1]) / 2;
  }

  float operator[](std::uint8_t code) const { return numbers_[code]; }
  std::uint8_t nearest(float x) const {
    return static_cast<std::uint8_t>(std::lower_bound(middles_.begin(), middles_.end(), x) -
                                     middles_.begin());
  }

 private:
  std::array<float, 256> numbers_;
  std::array<float, 255> middles_;
};

constexpr std::size_t kLongestBlock = 4096;  // that the shape rule lets through

struct State {
  std::uint8_t* codes;
  float* scales;
  const DynamicNumbers& numbers;

  float at(std::size_t block, std::size_t element) const {
    return numbers[codes[element]] * scales[block];
  }
  void keep(std::size_t block, std::size_t begin, std::span<const float> values) const {
    float scale = 0;
    for (const float value : values) scale = std::max(scale, std::abs(value));
    scales[block] = scale;
    for (std::size_t i = 0; i < values.size(); ++i)
      codes[begin + i] = numbers.nearest(scale > 0 ? values[i] / scale : 0);
  }
};

struct Rule {
  double learning_rate, beta1, beta2, epsilon, weight_decay;
};

struct Update {
  Rule rule;
  onednn::MatrixPlaces places;
  std::size_t elements, block;
  DynamicNumbers means{true}, squares{false};

  void run(const OpBuffers& buffers) const {
    const double steps = *floats(buffers.inputs[6]);
    const auto correct_mean = static_cast<float>(1 / (1 - std::pow(rule.beta1, steps)));
    const auto correct_square = static_cast<float>(1 / (1 - std::pow(rule.beta2, steps)));
    const auto beta1 = static_cast<float>(rule.beta1), beta2 = static_cast<float>(rule.beta2);
    const auto new_mean = static_cast<float>(1 - rule.beta1);
    const auto new_square = static_cast<float>(1 - rule.beta2);
    const auto rate = static_cast<float>(rule.learning_rate);
    const auto epsilon = static_cast<float>(rule.epsilon);
    const auto weight_decay = static_cast<float>(rule.weight_decay);
    float* weight = floats(buffers.inputs[0]);
    const float* gradient = floats(buffers.inputs[1]);
    const auto bytes = [&](std::size_t i) {
      return reinterpret_cast<std::uint8_t*>(buffers.inputs[i]);
    };
    const State mean = {bytes(2), floats(buffers.inputs[3]), means};
    const State square = {bytes(4), floats(buffers.inputs[5]), squares};
    const std::size_t blocks = (elements + block - 1) / block;
    const std::size_t grain = std::max<std::size_t>(1, kPartFloats / block);
    in_parallel(blocks, grain, [&](std::size_t first, std::size_t last) {
      std::array<float, kLongestBlock> m, s;
      for (std::size_t b = first; b < last; ++b) {
        const std::size_t begin = b * block, count = std::min(elements, begin + block) - begin;
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t element = begin + i;
          const std::size_t place = places.rows[element / places.columns.size()] +
                                    places.columns[element % places.columns.size()];
          const float g = gradient[place];
          m[i] = beta1 * mean.at(b, element) + new_mean * g;
          s[i] = beta2 * square.at(b, element) + new_square * g * g;
          const float step = m[i] * correct_mean / (std::sqrt(s[i] * correct_square) + epsilon);
          weight[place] -= rate * (step + weight_decay * weight[place]);
        }
        mean.keep(b, begin, {m.data(), count});
        square.keep(b, begin, {s.data(), count});
      }
    });
  }
};

}  // namespace

Kernel make_adam8bit(const Op& op, const Program& program) {
  const Rule rule = {op.number("learning_rate"), op.number("beta1"), op.number("beta2"),
                     op.number("epsilon"), op.number("weight_decay")};
  const Value& weight = program.value(op.inputs[0]);
  const auto block = static_cast<std::size_t>(op.integer("block"));
  const Update update = {.rule = rule,
                         .places = onednn::matrix_places(weight),
                         .elements = static_cast<std::size_t>(element_count(weight.shape)),
                         .block = block};
  return [update](const OpBuffers& buffers) { update.run(buffers); };
}

}  // namespace headroom::host

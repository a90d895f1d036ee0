#include "tests/unit/reference/eight_bits.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/unit/reference/kinds.h"

namespace headroom::testing {
namespace {

// The leading zeros are the exponent, a one ends them, and the remaining bits are a fraction of
// [0.1, 1].
double dynamic_number(unsigned bits, int width) {
  const int fraction_bits = std::bit_width(bits) - 1;
  const double parts = std::ldexp(1.0, fraction_bits);
  const double part = static_cast<double>(bits) - parts;
  return std::pow(10.0, fraction_bits + 1 - width) * (0.1 + 0.9 * (part + 0.5) / parts);
}

double nearest_code(const Tensor& numbers, double x) {
  const auto nearest = std::min_element(numbers.begin(), numbers.end(), [&](double a, double b) {
    return std::abs(a - x) < std::abs(b - x);
  });
  return static_cast<double>(nearest - numbers.begin());
}

// One state: its values, and how it is stored again, block by block.
struct State {
  Tensor &codes, &scales;
  const Tensor& numbers;
  std::size_t block;

  double at(std::size_t i) const {
    return numbers[static_cast<std::size_t>(codes[i])] * scales[i / block];
  }
  void keep(const Tensor& values) const {
    for (std::size_t begin = 0; begin < values.size(); begin += block) {
      const std::size_t end = std::min(values.size(), begin + block);
      double& scale = scales[begin / block] = 0;
      for (std::size_t i = begin; i < end; ++i) scale = std::max(scale, std::abs(values[i]));
      for (std::size_t i = begin; i < end; ++i)
        codes[i] = nearest_code(numbers, scale > 0 ? values[i] / scale : 0);
    }
  }
};

void adam8bit(const Run& r) {
  static const Tensor means = eight_bit_numbers(true), squares = eight_bit_numbers(false);
  const auto block = static_cast<std::size_t>(r.op.integer("block"));
  const State mean = {r.in(2), r.in(3), means, block}, square = {r.in(4), r.in(5), squares, block};
  const double b1 = r.op.number("beta1"), b2 = r.op.number("beta2"), steps = r.in(6)[0];
  Tensor m(r.in(0).size()), s(m.size());
  for (std::size_t i = 0; i < m.size(); ++i) {
    const double g = r.in(1)[i];
    double& w = r.in(0)[i];
    m[i] = b1 * mean.at(i) + (1 - b1) * g;
    s[i] = b2 * square.at(i) + (1 - b2) * g * g;
    const double direction = m[i] / (1 - std::pow(b1, steps)) /
                             (std::sqrt(s[i] / (1 - std::pow(b2, steps))) + r.op.number("epsilon"));
    w -= r.op.number("learning_rate") * (direction + r.op.number("weight_decay") * w);
  }
  mean.keep(m);
  square.keep(s);
}

}  // namespace

Tensor eight_bit_numbers(bool is_signed) {
  Tensor numbers = {0, 1};
  for (unsigned bits = is_signed ? 1 : 2; bits < (is_signed ? 128U : 256U); ++bits) {
    numbers.push_back(dynamic_number(bits, is_signed ? 7 : 8));
    if (is_signed) numbers.push_back(-numbers.back());
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Kinds eight_bit_kinds() { return {{"adam8bit", adam8bit}}; }

}  // namespace headroom::testing

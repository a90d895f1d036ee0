// Loops over whole buffers including padding, whose zeros add nothing to a norm.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"

namespace headroom::host {
namespace {

HEADROOM_VECTORISED double sum_of_squares(const float* x, std::size_t begin, std::size_t end) {
  double sums[8] = {};
  std::size_t i = begin;
  for (; i + 8 <= end; i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane)
      sums[lane] += static_cast<double>(x[i + lane]) * static_cast<double>(x[i + lane]);
  for (; i < end; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

HEADROOM_VECTORISED void scale(float* x, float factor, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) x[i] *= factor;
}

}  // namespace

Kernel make_clip_factor(const Op& op, const Program& program) {
  std::vector<std::size_t> counts;
  for (const ValueId id : op.inputs) counts.push_back(float_count(program, id));
  const std::size_t largest = *std::max_element(counts.begin(), counts.end());
  // Sums over parts of equal size, added in order: the norm does not depend on the number of
  // threads.
  std::vector<double> parts((largest + kPartFloats - 1) / kPartFloats);
  return [counts, parts, limit = op.number("largest_norm")](const OpBuffers& buffers) mutable {
    double squares = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const float* gradient = floats(buffers.inputs[i]);
      in_parallel(counts[i], [&](std::size_t begin, std::size_t end) {
        parts[begin / kPartFloats] = sum_of_squares(gradient, begin, end);
      });
      const auto used = (counts[i] + kPartFloats - 1) / kPartFloats;
      squares = std::accumulate(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(used),
                                squares);
    }
    const double norm = std::sqrt(squares);
    *floats(buffers.outputs[0]) = norm > limit ? static_cast<float>(limit / norm) : 1.0F;
  };
}

Kernel make_scale_gradient(const Op& op, const Program& program) {
  return [count = float_count(program, op.inputs[0])](const OpBuffers& buffers) {
    const float factor = *floats(buffers.inputs[1]);
    if (factor == 1.0F) return;
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      scale(floats(buffers.inputs[0]), factor, begin, end);
    });
  };
}

}  // namespace headroom::host

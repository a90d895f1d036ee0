#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"
#include "harness/device/host/kernels/vector_math.h"

namespace headroom::host {
namespace {

struct Scores {
  std::size_t rows_per_sample, rows, width;
  float scale;
};

Scores scores_of(const Op& op, const Value& x) {
  const auto size = [&](std::size_t i) { return static_cast<std::size_t>(x.shape[i]); };
  return {size(1) * size(2), size(0) * size(1) * size(2), size(3),
          static_cast<float>(op.number("scale"))};
}

HEADROOM_VECTORISED void row(const float* __restrict x, const std::int32_t* __restrict mask,
                             float* __restrict y, float scale, std::size_t width) {
  // Shifted by the largest, so that no exponential overflows.
  float largest = -std::numeric_limits<float>::max();
#pragma omp simd reduction(max : largest)
  for (std::size_t k = 0; k < width; ++k) {
    const float candidate = mask[k] != 0 ? x[k] : -std::numeric_limits<float>::max();
    largest = candidate > largest ? candidate : largest;
  }
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t k = 0; k < width; ++k) {
    const float e = exponential(scale * (x[k] - largest));
    y[k] = mask[k] != 0 ? e : 0.0F;
    sum += y[k];
  }
  const float share = sum > 0 ? 1 / sum : 0.0F;  // a row that is all padding
  for (std::size_t k = 0; k < width; ++k) y[k] *= share;
}

HEADROOM_VECTORISED void row_backward(const float* __restrict y, const float* __restrict dy,
                                      float* __restrict dx, float scale, std::size_t width) {
  float product = 0;
#pragma omp simd reduction(+ : product)
  for (std::size_t k = 0; k < width; ++k) product += y[k] * dy[k];
  for (std::size_t k = 0; k < width; ++k) dx[k] = scale * y[k] * (dy[k] - product);
}

}  // namespace

Kernel make_masked_softmax(const Op& op, const Program& program) {
  const Scores scores = scores_of(op, program.value(op.inputs[0]));
  return [scores](const OpBuffers& buffers) {
    in_parallel(scores.rows, row_grain(scores.width), [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n)
        row(floats(buffers.inputs[0]) + n * scores.width,
            whole_numbers(buffers.inputs[1]) + n / scores.rows_per_sample * scores.width,
            floats(buffers.outputs[0]) + n * scores.width, scores.scale, scores.width);
    });
  };
}

Kernel make_causal_softmax(const Op& op, const Program& program) {
  const Scores scores = scores_of(op, program.value(op.inputs[0]));
  // Ones, then zeros: row q looks at it from where q + 1 ones are left.
  std::vector<std::int32_t> mask(2 * scores.width - 1);
  std::fill_n(mask.begin(), scores.width, 1);
  return [scores, mask = std::move(mask)](const OpBuffers& buffers) {
    in_parallel(scores.rows, row_grain(scores.width), [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n)
        row(floats(buffers.inputs[0]) + n * scores.width,
            mask.data() + (scores.width - 1 - n % scores.width),
            floats(buffers.outputs[0]) + n * scores.width, scores.scale, scores.width);
    });
  };
}

Kernel make_masked_softmax_backward(const Op& op, const Program& program) {
  const Scores scores = scores_of(op, program.value(op.inputs[0]));
  return [scores](const OpBuffers& buffers) {
    in_parallel(scores.rows, row_grain(scores.width), [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n)
        row_backward(floats(buffers.inputs[0]) + n * scores.width,
                     floats(buffers.inputs[1]) + n * scores.width,
                     floats(buffers.outputs[0]) + n * scores.width, scores.scale, scores.width);
    });
  };
}

}  // namespace headroom::host

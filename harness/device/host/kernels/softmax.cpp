#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "harness/device/host/kernels/element.h"
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

// y may alias x.
template <typename T>
HEADROOM_VECTORISED void row(const T* x, const std::int32_t* __restrict mask, T* y, float scale,
                             std::size_t width) {
  // Subtracts the largest score, so that no exponential overflows.
  float largest = -std::numeric_limits<float>::max();
#pragma omp simd reduction(max : largest)
  for (std::size_t k = 0; k < width; ++k) {
    const float score = load(x[k]);  // read everywhere: a conditional read is not vectorised
    const float candidate = mask[k] != 0 ? score : -std::numeric_limits<float>::max();
    largest = candidate > largest ? candidate : largest;
  }
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t k = 0; k < width; ++k) {
    const float e = exponential(scale * (load(x[k]) - largest));
    const float kept = mask[k] != 0 ? e : 0.0F;
    store(y[k], kept);  // bf16 is rounded here and once more below
    sum += kept;
  }
  const float share = sum > 0 ? 1 / sum : 0.0F;  // 0 for a row that is all padding
#pragma omp simd
  for (std::size_t k = 0; k < width; ++k) store(y[k], load(y[k]) * share);
}

// dx may alias y or dy.
template <typename T>
HEADROOM_VECTORISED void row_backward(const T* y, const T* dy, T* dx, float scale,
                                      std::size_t width) {
  float product = 0;
#pragma omp simd reduction(+ : product)
  for (std::size_t k = 0; k < width; ++k) product += load(y[k]) * load(dy[k]);
#pragma omp simd
  for (std::size_t k = 0; k < width; ++k)
    store(dx[k], scale * load(y[k]) * (load(dy[k]) - product));
}

// run(n) computes row n.
template <typename Run>
void over_rows(const Scores& scores, const Run& run) {
  in_parallel(scores.rows, row_grain(scores.width), [&](std::size_t begin, std::size_t end) {
    for (std::size_t n = begin; n < end; ++n) run(n);
  });
}

template <typename T>
Kernel masked_softmax(const Scores& scores) {
  return [scores](const OpBuffers& buffers) {
    over_rows(scores, [&](std::size_t n) {
      row<T>(elements<T>(buffers.inputs[0]) + n * scores.width,
             whole_numbers(buffers.inputs[1]) + n / scores.rows_per_sample * scores.width,
             elements<T>(buffers.outputs[0]) + n * scores.width, scores.scale, scores.width);
    });
  };
}

template <typename T>
Kernel causal_softmax(const Scores& scores) {
  // Ones, then zeros: row q starts reading where q + 1 ones are left.
  std::vector<std::int32_t> mask(2 * scores.width - 1);
  std::fill_n(mask.begin(), scores.width, 1);
  return [scores, mask = std::move(mask)](const OpBuffers& buffers) {
    over_rows(scores, [&](std::size_t n) {
      row<T>(elements<T>(buffers.inputs[0]) + n * scores.width,
             mask.data() + (scores.width - 1 - n % scores.width),
             elements<T>(buffers.outputs[0]) + n * scores.width, scores.scale, scores.width);
    });
  };
}

template <typename T>
Kernel masked_softmax_backward(const Scores& scores) {
  return [scores](const OpBuffers& buffers) {
    over_rows(scores, [&](std::size_t n) {
      row_backward<T>(elements<T>(buffers.inputs[0]) + n * scores.width,
                      elements<T>(buffers.inputs[1]) + n * scores.width,
                      elements<T>(buffers.outputs[0]) + n * scores.width, scores.scale,
                      scores.width);
    });
  };
}

}  // namespace

Kernel make_masked_softmax(const Op& op, const Program& program) {
  const Value& x = program.value(op.inputs[0]);
  return for_type_of(x, [&]<typename T>(T) { return masked_softmax<T>(scores_of(op, x)); });
}

Kernel make_causal_softmax(const Op& op, const Program& program) {
  const Value& x = program.value(op.inputs[0]);
  return for_type_of(x, [&]<typename T>(T) { return causal_softmax<T>(scores_of(op, x)); });
}

Kernel make_masked_softmax_backward(const Op& op, const Program& program) {
  const Value& y = program.value(op.inputs[0]);
  return for_type_of(y,
                     [&]<typename T>(T) { return masked_softmax_backward<T>(scores_of(op, y)); });
}

}  // namespace headroom::host

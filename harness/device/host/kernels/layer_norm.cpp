#include <cmath>

#include "harness/device/host/kernels/element.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"

namespace headroom::host {
namespace {

struct Rows {
  std::size_t count, width;
};

Rows rows_of(const Value& x) {
  return {static_cast<std::size_t>(x.shape[0]), static_cast<std::size_t>(x.shape[1])};
}

struct Statistics {
  float mean, variance;
};

template <typename T>
HEADROOM_VECTORISED Statistics statistics(const T* x, std::size_t width) {
  const float share = 1.0F / static_cast<float>(width);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t c = 0; c < width; ++c) sum += load(x[c]);
  const float mean = sum * share;
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::size_t c = 0; c < width; ++c) squares += (load(x[c]) - mean) * (load(x[c]) - mean);
  return {mean, squares * share};
}

// y may alias x.
template <typename T>
HEADROOM_VECTORISED void normalise(const T* x, const float* __restrict scale,
                                   const float* __restrict shift, T* y, float mean, float inverse,
                                   std::size_t width) {
#pragma omp simd
  for (std::size_t c = 0; c < width; ++c)
    store(y[c], (load(x[c]) - mean) * inverse * scale[c] + shift[c]);
}

// dx = inverse (g - mean(g) - x^ mean(g x^)) with g = dy scale and x^ = (x - mean) inverse. dx may
// alias x or dy.
template <typename T>
HEADROOM_VECTORISED void row_backward(const T* x, const T* dy, const float* __restrict scale, T* dx,
                                      float mean, float inverse, std::size_t width) {
  const float share = 1.0F / static_cast<float>(width);
  float sum = 0;
  float product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::size_t c = 0; c < width; ++c) {
    const float g = load(dy[c]) * scale[c];
    sum += g;
    product += g * (load(x[c]) - mean);
  }
  sum *= share;
  product *= share * inverse * inverse;
#pragma omp simd
  for (std::size_t c = 0; c < width; ++c)
    store(dx[c], inverse * (load(dy[c]) * scale[c] - sum - (load(x[c]) - mean) * product));
}

// Computes columns [begin, end) of all rows, so that the order of sums does not depend on the
// number of threads.
template <typename T>
HEADROOM_VECTORISED void columns_backward(const T* __restrict x, const T* __restrict dy,
                                          const float* __restrict mean,
                                          const float* __restrict inverse, float* __restrict dscale,
                                          float* __restrict dshift, Rows rows, std::size_t begin,
                                          std::size_t end) {
  for (std::size_t c = begin; c < end; ++c) dscale[c] = dshift[c] = 0;
  for (std::size_t n = 0; n < rows.count; ++n) {
    const std::size_t row = n * rows.width;
    for (std::size_t c = begin; c < end; ++c) {
      dscale[c] += load(dy[row + c]) * ((load(x[row + c]) - mean[n]) * inverse[n]);
      dshift[c] += load(dy[row + c]);
    }
  }
}

template <typename T>
Kernel layer_norm(Rows rows, float epsilon) {
  return [rows, epsilon](const OpBuffers& buffers) {
    const T* x = elements<T>(buffers.inputs[0]);
    T* y = elements<T>(buffers.outputs[0]);
    float* mean = floats(buffers.outputs[1]);
    float* inverse = floats(buffers.outputs[2]);
    in_parallel(rows.count, row_grain(rows.width), [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n) {
        const Statistics found = statistics<T>(x + n * rows.width, rows.width);
        mean[n] = found.mean;
        inverse[n] = 1 / std::sqrt(found.variance + epsilon);
        normalise<T>(x + n * rows.width, floats(buffers.inputs[1]), floats(buffers.inputs[2]),
                     y + n * rows.width, mean[n], inverse[n], rows.width);
      }
    });
  };
}

template <typename T>
Kernel layer_norm_backward(Rows rows) {
  return [rows](const OpBuffers& buffers) {
    const T* x = elements<T>(buffers.inputs[0]);
    const T* dy = elements<T>(buffers.inputs[1]);
    const float* mean = floats(buffers.inputs[2]);
    const float* inverse = floats(buffers.inputs[3]);
    // Columns come first, because the rows may overwrite x or dy.
    constexpr std::size_t kColumns = 64;
    in_parallel(rows.width, kColumns, [&](std::size_t begin, std::size_t end) {
      columns_backward<T>(x, dy, mean, inverse, floats(buffers.outputs[1]),
                          floats(buffers.outputs[2]), rows, begin, end);
    });
    in_parallel(rows.count, row_grain(rows.width), [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n)
        row_backward<T>(x + n * rows.width, dy + n * rows.width, floats(buffers.inputs[4]),
                        elements<T>(buffers.outputs[0]) + n * rows.width, mean[n], inverse[n],
                        rows.width);
    });
  };
}

}  // namespace

Kernel make_layer_norm(const Op& op, const Program& program) {
  const Value& x = program.value(op.inputs[0]);
  const auto epsilon = static_cast<float>(op.number("epsilon"));
  return for_type_of(x, [&]<typename T>(T) { return layer_norm<T>(rows_of(x), epsilon); });
}

Kernel make_layer_norm_backward(const Op& op, const Program& program) {
  const Value& x = program.value(op.inputs[0]);
  return for_type_of(x, [&]<typename T>(T) { return layer_norm_backward<T>(rows_of(x)); });
}

}  // namespace headroom::host

// Layer normalisation of each row by its own mean and variance. cuDNN offers it only in its graph
// interface; here outputs may share memory with x or dy.
#pragma once

#include <cmath>

#include "harness/device/cuda/module/work/map.h"
#include "harness/device/cuda/module/work/sums.h"

namespace headroom::cuda {

struct MeanAndVariance {
  double mean, variance;
};
// Computes both from the sums of x and of x squared.
HEADROOM_DEVICE inline MeanAndVariance mean_and_variance(Sums sums, double count) {
  const double mean = sums.first / count;
  const double variance = sums.second / count - mean * mean;
  return {mean, variance > 0 ? variance : 0.0 * variance};  // NaN stays NaN
}

template <typename T>
struct SelfAndSquare {
  const T* x;
  Index width;
  HEADROOM_DEVICE SumsOf<T> operator()(Index row, Index column) const {
    const decltype(SumsOf<T>::first) value = load(x[row * width + column]);
    return {value, value * value};
  }
};

template <typename T>
class LayerNorm {
 public:
  LayerNorm(const Op& op, const Program& program)
      : rows_(program.value(op.inputs[0]).shape[0]),
        width_(program.value(op.inputs[0]).shape[1]),
        epsilon_(op.number("epsilon")) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T* x = elements<T>(buffers.inputs[0]);
    const float *scale = floats(buffers.inputs[1]), *shift = floats(buffers.inputs[2]);
    T* y = elements<T>(buffers.outputs[0]);
    float *mean = floats(buffers.outputs[1]), *inverse = floats(buffers.outputs[2]);
    Sums* sums = queue.template scratch<Sums>(rows_);
    queue.reduce_rows(rows_, width_, SelfAndSquare<T>{x, width_}, Add{}, Sums{}, sums);
    queue.for_each(rows_, [=, *this] HEADROOM_DEVICE(Index n) {
      const MeanAndVariance found = mean_and_variance(sums[n], static_cast<double>(width_));
      mean[n] = static_cast<float>(found.mean);
      inverse[n] = static_cast<float>(1 / std::sqrt(found.variance + epsilon_));
    });
    const auto normalise = [=] HEADROOM_DEVICE(Index n, Index c, float value) {
      return (value - mean[n]) * inverse[n] * scale[c] + shift[c];
    };
    map_rows(queue, rows_ * width_, width_, normalise, x, y);
  }

 private:
  Index rows_, width_;
  double epsilon_;
};

// Sums of the backward pass: over rows, g = dy scale and g x^; over columns, dy x^ and dy, with x^
// = (x - mean) inverse.
template <typename T>
struct LayerNormOperands {
  const T* x;
  const T* dy;
  const float* mean;
  const float* inverse;
  const float* scale;
  Index width;

  HEADROOM_DEVICE float normalised(Index row, float value) const {
    return (value - mean[row]) * inverse[row];
  }
  // Over columns.
  HEADROOM_DEVICE SumsOf<T> operator()(Index row, Index column) const {
    const Index i = row * width + column;
    const decltype(SumsOf<T>::first) gradient = load(dy[i]);
    return {gradient * normalised(row, load(x[i])), gradient};
  }
};

template <typename T>
struct OverRows {
  LayerNormOperands<T> of;

  HEADROOM_DEVICE SumsOf<T> operator()(Index row, Index column) const {
    const Index i = row * of.width + column;
    const decltype(SumsOf<T>::first) g = load(of.dy[i]) * of.scale[column];
    return {g, g * of.normalised(row, load(of.x[i]))};
  }
};

struct KeepSums {
  float* first;
  float* second;
  HEADROOM_DEVICE void operator()(Index c, Sums sums) const {
    first[c] = static_cast<float>(sums.first);
    second[c] = static_cast<float>(sums.second);
  }
};

template <typename T>
class LayerNormBackward {
 public:
  LayerNormBackward(const Op& op, const Program& program)
      : rows_(program.value(op.inputs[0]).shape[0]), width_(program.value(op.inputs[0]).shape[1]) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const LayerNormOperands<T> of = {elements<T>(buffers.inputs[0]), elements<T>(buffers.inputs[1]),
                                     floats(buffers.inputs[2]),      floats(buffers.inputs[3]),
                                     floats(buffers.inputs[4]),      width_};
    T* dx = elements<T>(buffers.outputs[0]);
    Sums* sums = queue.template scratch<Sums>(rows_);
    queue.reduce_rows(rows_, width_, OverRows<T>{of}, Add{}, Sums{}, sums);
    sum_columns(queue, rows_, width_, of,
                KeepSums{floats(buffers.outputs[1]), floats(buffers.outputs[2])});
    // This step is last because it may overwrite x or dy.
    const auto share = 1 / static_cast<double>(width_);
    const auto gradient = [=] HEADROOM_DEVICE(Index n, Index c, float value, float incoming) {
      const auto of_scale = static_cast<float>(share * sums[n].second);
      const auto of_shift = static_cast<float>(share * sums[n].first);
      const float less = of_shift + of.normalised(n, value) * of_scale;
      return of.inverse[n] * (incoming * of.scale[c] - less);
    };
    map_rows(queue, rows_ * width_, width_, gradient, of.x, of.dy, dx);
  }

 private:
  Index rows_, width_;
};

template <typename Queue>
Works<Queue> layer_norm_works() {
  return {
      {"layer_norm", make_typed<LayerNorm, Queue>},
      {"layer_norm_backward", make_typed<LayerNormBackward, Queue>},
  };
}

}  // namespace headroom::cuda

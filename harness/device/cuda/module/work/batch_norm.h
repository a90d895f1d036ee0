// Batch normalisation. cuDNN's version keeps the inverse deviation where this op keeps the
// variance, and does not promise to work in place, which passes may ask for. A row is one channel
// of one image: sums are taken over rows first, and then over the images.
#pragma once

#include <cmath>

#include "harness/device/cuda/module/work/batch_norm_pixels.h"
#include "harness/device/cuda/module/work/layer_norm.h"

namespace headroom::cuda {

struct Images {
  Index images;
  Divisor channels;
  Index plane;  // height · width

  explicit Images(const Shape& x) : images(x[0]), channels(x[1]), plane(x[2] * x[3]) {}
  Index rows() const { return images * channels; }
  Index elements() const { return rows() * plane; }
  double count() const { return static_cast<double>(images * plane); }
};

// The sums of one channel of one image.
struct OfChannel {
  const Sums* planes;
  Index channels;
  HEADROOM_DEVICE Sums operator()(Index channel, Index image) const {
    return planes[image * channels + channel];
  }
};

// Calls finish(c, sums of value(row, pixel) over channel c) for each channel c.
template <typename Queue, typename Value, typename Finish>
void sum_channels(Queue& queue, const Images& shape, Value value, Finish finish) {
  Sums* planes = queue.template scratch<Sums>(shape.rows());
  queue.reduce_rows(shape.rows(), shape.plane, value, Add{}, Sums{}, planes);
  queue.reduce_rows(shape.channels, shape.images, OfChannel{planes, shape.channels}, Add{}, Sums{},
                    finish);
}

HEADROOM_DEVICE inline float inverse_deviation(float variance, double epsilon) {
  return static_cast<float>(1 / std::sqrt(variance + epsilon));
}

// Computed once for every channel, so that no element repeats the root and the division.
template <typename Queue>
void find_inverse_deviations(Queue& queue, Index channels, const float* variance, double epsilon,
                             float* inverse) {
  queue.for_each(channels, [=] HEADROOM_DEVICE(Index c) {
    inverse[c] = inverse_deviation(variance[c], epsilon);
  });
}

struct Normalise {
  const float* scale;
  const float* shift;
  const float* mean;
  const float* inverse;
  Divisor channels;

  HEADROOM_DEVICE float operator()(Index row, Index, float value) const {
    const Index c = row % channels;
    return (value - mean[c]) * (inverse[c] * scale[c]) + shift[c];
  }
};

// relu of the normalised value, or of its sum with another.
struct NormaliseAndRelu {
  Normalise normalise;

  HEADROOM_DEVICE float operator()(Index row, Index column, float value, float other = 0) const {
    const float y = normalise(row, column, value) + other;
    return y < 0 ? 0 : y;  // NaN stays NaN
  }
};

struct KeepStatistics {
  double count, epsilon;
  float *mean, *variance, *inverse;
  HEADROOM_DEVICE void operator()(Index c, Sums sums) const {
    const MeanAndVariance found = mean_and_variance(sums, count);
    mean[c] = static_cast<float>(found.mean);
    variance[c] = static_cast<float>(found.variance);
    inverse[c] = inverse_deviation(variance[c], epsilon);
  }
};

// Inference uses the running statistics; training uses those of the batch and keeps them.
template <typename T, bool kTraining, Then kThen>
class BatchNorm {
 public:
  BatchNorm(const Op& op, const Program& program)
      : shape_(program.value(op.inputs[0]).shape), epsilon_(op.number("epsilon")) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T* x = elements<T>(buffers.inputs[0]);
    T* y = elements<T>(buffers.outputs[0]);
    float* mean = floats(kTraining ? buffers.outputs[1] : buffers.inputs[3]);
    float* variance = floats(kTraining ? buffers.outputs[2] : buffers.inputs[4]);
    float* inverse = queue.template scratch<float>(shape_.channels);
    if constexpr (kTraining)
      sum_channels(queue, shape_, SelfAndSquare<T>{x, shape_.plane},
                   KeepStatistics{shape_.count(), epsilon_, mean, variance, inverse});
    else
      find_inverse_deviations(queue, shape_.channels, variance, epsilon_, inverse);
    const Normalise normalise = {floats(buffers.inputs[1]), floats(buffers.inputs[2]), mean,
                                 inverse, shape_.channels};
    const Index count = shape_.elements();
    if constexpr (kThen == Then::nothing) {
      map_rows(queue, count, shape_.plane, normalise, x, y);
    } else if constexpr (kThen == Then::relu) {
      map_rows(queue, count, shape_.plane, NormaliseAndRelu{normalise}, x, y);
    } else {
      const T* other = elements<T>(buffers.inputs[3]);
      map_rows(queue, count, shape_.plane, NormaliseAndRelu{normalise}, x, other, y);
    }
  }

 private:
  Images shape_;
  double epsilon_;
};

template <typename T, int n, bool kTraining, Then kThen>
class BatchNormOfPixels {
 public:
  BatchNormOfPixels(const Op& op, const Program& program)
      : shape_(program.value(op.inputs[0]).shape), epsilon_(op.number("epsilon")) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T* x = elements<T>(buffers.inputs[0]);
    float* mean = floats(kTraining ? buffers.outputs[1] : buffers.inputs[3]);
    float* variance = floats(kTraining ? buffers.outputs[2] : buffers.inputs[4]);
    float* inverse = queue.template scratch<float>(shape_.channels);
    if constexpr (kTraining)
      sum_pixels<n>(
          queue, shape_, SelfAndSquareOfPixels<T, n>{x, shape_.channels},
          KeepStatistics{static_cast<double>(shape_.rows), epsilon_, mean, variance, inverse});
    else
      find_inverse_deviations(queue, shape_.channels, variance, epsilon_, inverse);
    const PixelNorm norm = {floats(buffers.inputs[1]), floats(buffers.inputs[2]), mean, inverse};
    const T* other = kThen == Then::sum_and_relu ? elements<T>(buffers.inputs[3]) : nullptr;
    queue.for_each_by_column(shape_.rows, shape_.channels / n,
                             NormalisePixels<T, n, kThen>{
                                 norm, x, other, elements<T>(buffers.outputs[0]), shape_.channels});
  }

 private:
  Pixels shape_;
  double epsilon_;
};

template <bool kTraining, Then kThen, typename Queue>
Work<Queue> make_batch_norm(const Op& op, const Program& program) {
  const Value& x = program.value(op.inputs[0]);
  if (!is_channels_last(x))
    return host::for_type_of(x, [&]<typename T>(T) -> Work<Queue> {
      return BatchNorm<T, kTraining, kThen>(op, program);
    });
  return for_columns_of(x, [&]<typename T, int n>(T, std::integral_constant<int, n>) {
    return Work<Queue>(BatchNormOfPixels<T, n, kTraining, kThen>(op, program));
  });
}

// The gradient of a normalised value: all of it, or nothing where relu let nothing through.
template <bool kRelu>
struct Passed {
  Normalise normalise;

  HEADROOM_DEVICE float operator()(Index row, Index column, float value, float incoming) const {
    if constexpr (kRelu)
      if (!(normalise(row, column, value) > 0)) return 0;
    return incoming;
  }
};

template <typename T, bool kRelu>
struct GradientAndProduct {
  const T* x;
  const T* dy;
  Index width;
  Passed<kRelu> passed;
  HEADROOM_DEVICE SumsOf<T> operator()(Index row, Index column) const {
    const Index i = row * width + column;
    const float value = load(x[i]);
    const decltype(SumsOf<T>::first) gradient = passed(row, column, value, load(dy[i]));
    return {gradient, gradient * value};
  }
};

struct KeepGradients {
  const float *mean, *inverse;
  float *dscale, *dshift;
  HEADROOM_DEVICE void operator()(Index c, Sums found) const {
    dshift[c] = static_cast<float>(found.first);
    dscale[c] = static_cast<float>((found.second - mean[c] * found.first) * inverse[c]);
  }
};

template <typename T, bool kRelu>
class BatchNormBackward {
 public:
  BatchNormBackward(const Op& op, const Program& program)
      : shape_(program.value(op.inputs[0]).shape), epsilon_(op.number("epsilon")) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T *x = elements<T>(buffers.inputs[0]), *dy = elements<T>(buffers.inputs[1]);
    const float *mean = floats(buffers.inputs[2]), *variance = floats(buffers.inputs[3]);
    const float* scale = floats(buffers.inputs[4]);
    T* dx = elements<T>(buffers.outputs[0]);
    float *dscale = floats(buffers.outputs[1]), *dshift = floats(buffers.outputs[2]);
    float* inverse = queue.template scratch<float>(shape_.channels);
    find_inverse_deviations(queue, shape_.channels, variance, epsilon_, inverse);
    const Divisor channels = shape_.channels;
    const float* shift = kRelu ? floats(buffers.inputs[5]) : nullptr;
    const Passed<kRelu> passed = {{scale, shift, mean, inverse, channels}};
    sum_channels(queue, shape_, GradientAndProduct<T, kRelu>{x, dy, shape_.plane, passed},
                 KeepGradients{mean, inverse, dscale, dshift});
    const auto share = static_cast<float>(1 / shape_.count());
    const auto gradient = [=] HEADROOM_DEVICE(Index row, Index pixel, float value, float incoming) {
      const Index c = row % channels;
      const float of_scale = share * dscale[c] * inverse[c], of_shift = share * dshift[c];
      const float less = of_shift + (value - mean[c]) * of_scale;
      return scale[c] * inverse[c] * (passed(row, pixel, value, incoming) - less);
    };
    map_rows(queue, shape_.elements(), shape_.plane, gradient, x, dy, dx);
  }

 private:
  Images shape_;
  double epsilon_;
};

template <typename T, int n, bool kRelu>
class BatchNormBackwardOfPixels {
 public:
  BatchNormBackwardOfPixels(const Op& op, const Program& program)
      : shape_(program.value(op.inputs[0]).shape), epsilon_(op.number("epsilon")) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T *x = elements<T>(buffers.inputs[0]), *dy = elements<T>(buffers.inputs[1]);
    const float *mean = floats(buffers.inputs[2]), *variance = floats(buffers.inputs[3]);
    float *dscale = floats(buffers.outputs[1]), *dshift = floats(buffers.outputs[2]);
    float* inverse = queue.template scratch<float>(shape_.channels);
    find_inverse_deviations(queue, shape_.channels, variance, epsilon_, inverse);
    const PixelNorm norm = {floats(buffers.inputs[4]), kRelu ? floats(buffers.inputs[5]) : nullptr,
                            mean, inverse};
    const Index channels = shape_.channels;
    sum_pixels<n>(queue, shape_, GradientAndProductOfPixels<T, n, kRelu>{norm, x, dy, channels},
                  KeepGradients{mean, inverse, dscale, dshift});
    const auto share = static_cast<float>(1 / static_cast<double>(shape_.rows));
    queue.for_each_by_column(
        shape_.rows, channels / n,
        GradientOfPixels<T, n, kRelu>{norm, dscale, dshift, x, dy, elements<T>(buffers.outputs[0]),
                                      channels, share});
  }

 private:
  Pixels shape_;
  double epsilon_;
};

template <bool kRelu, typename Queue>
Work<Queue> make_batch_norm_backward(const Op& op, const Program& program) {
  const Value& x = program.value(op.inputs[0]);
  if (!is_channels_last(x))
    return host::for_type_of(
        x, [&]<typename T>(T) -> Work<Queue> { return BatchNormBackward<T, kRelu>(op, program); });
  return for_columns_of(x, [&]<typename T, int n>(T, std::integral_constant<int, n>) {
    return Work<Queue>(BatchNormBackwardOfPixels<T, n, kRelu>(op, program));
  });
}

template <typename Queue>
Works<Queue> batch_norm_works() {
  return {
      {"batch_norm", make_batch_norm<true, Then::nothing, Queue>},
      {"batch_norm_add_relu", make_batch_norm<true, Then::sum_and_relu, Queue>},
      {"batch_norm_backward", make_batch_norm_backward<false, Queue>},
      {"batch_norm_inference", make_batch_norm<false, Then::nothing, Queue>},
      {"batch_norm_relu", make_batch_norm<true, Then::relu, Queue>},
      {"batch_norm_relu_backward", make_batch_norm_backward<true, Queue>},
  };
}

}  // namespace headroom::cuda

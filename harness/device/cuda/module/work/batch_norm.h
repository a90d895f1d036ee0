// Batch normalisation. cuDNN's version keeps the inverse deviation where this op keeps the
// variance, and does not promise to work in place, which passes may ask for. So the sums use CUB:
// first over groups of images, then over the groups.
#pragma once

#include <cmath>

#include "harness/device/cuda/module/work/layer_norm.h"

namespace headroom::cuda {

struct Images {
  Divisor images, channels, plane;  // plane: height · width

  explicit Images(const Shape& x) : images(x[0]), channels(x[1]), plane(x[2] * x[3]) {}
  Index elements() const { return images * channels * plane; }
  HEADROOM_DEVICE Index channel(Index i) const { return i / plane % channels; }
  // Maps the i-th element, counted channel by channel, to its place in the tensor.
  HEADROOM_DEVICE Index by_channel(Index i) const {
    const Index of_all = i / plane;
    return (of_all % images * channels + of_all / images) * plane + i % plane;
  }
  HEADROOM_DEVICE double count() const { return static_cast<double>(images * plane); }

  // The number of groups of equally many images into which the sums of a channel are divided:
  // enough to keep a GPU busy.
  Index groups() const {
    constexpr Index kEnough = 1024;
    Index groups = std::min<Index>(images, (kEnough + channels - 1) / channels);
    while (images % groups != 0) ++groups;
    return groups;
  }
};

template <typename Value>
struct ByChannel {
  Value value;
  Images shape;
  HEADROOM_DEVICE Sums operator()(Index i) const { return value(shape.by_channel(i)); }
};

// Calls finish(c, sums of value(i) over the elements i of channel c) for each channel c.
template <typename Queue, typename Value, typename Finish>
void sum_channels(Queue& queue, Images shape, Value value, Finish finish) {
  const Index groups = shape.groups(), sums = shape.channels * groups;
  Sums* parts = queue.template scratch<Sums>(sums);
  queue.reduce_rows(sums, shape.elements() / sums, ByChannel<Value>{value, shape}, Add{}, Sums{},
                    parts);
  finish_sums(queue, shape.channels, groups, parts, finish);
}

HEADROOM_DEVICE inline float inverse_deviation(float variance, double epsilon) {
  return static_cast<float>(1 / std::sqrt(variance + epsilon));
}

// Computed once for every channel, so that no element repeats the root and the division.
template <typename Queue>
const float* inverse_deviations(Queue& queue, Index channels, const float* variance,
                                double epsilon) {
  float* inverse = queue.template scratch<float>(channels);
  queue.for_each(channels, [=] HEADROOM_DEVICE(Index c) {
    inverse[c] = inverse_deviation(variance[c], epsilon);
  });
  return inverse;
}

struct Normalise {
  const float* scale;
  const float* shift;
  const float* mean;
  const float* inverse;
  Images shape;

  HEADROOM_DEVICE float operator()(Index i, float value) const {
    const Index c = shape.channel(i);
    return (value - mean[c]) * inverse[c] * scale[c] + shift[c];
  }
};

// Inference uses the running statistics; training uses those of the batch and keeps them.
template <typename T, bool kTraining>
class BatchNorm {
 public:
  BatchNorm(const Op& op, const Program& program)
      : shape_(program.value(op.inputs[0]).shape), epsilon_(op.number("epsilon")) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T* x = elements<T>(buffers.inputs[0]);
    float* mean = floats(kTraining ? buffers.outputs[1] : buffers.inputs[3]);
    float* variance = floats(kTraining ? buffers.outputs[2] : buffers.inputs[4]);
    if constexpr (kTraining) find_statistics(queue, x, mean, variance);
    const Normalise normalise = {floats(buffers.inputs[1]), floats(buffers.inputs[2]), mean,
                                 inverse_deviations(queue, shape_.channels, variance, epsilon_),
                                 shape_};
    map(queue, shape_.elements(), normalise, x, elements<T>(buffers.outputs[0]));
  }

  template <typename Queue>
  void find_statistics(Queue& queue, const T* x, float* mean, float* variance) const {
    sum_channels(queue, shape_, SelfAndSquare<T>{x},
                 [=, *this] HEADROOM_DEVICE(Index c, Sums sums) {
                   const MeanAndVariance found = mean_and_variance(sums, shape_.count());
                   mean[c] = static_cast<float>(found.mean);
                   variance[c] = static_cast<float>(found.variance);
                 });
  }

 private:
  Images shape_;
  double epsilon_;
};
template <typename T>
using BatchNormTraining = BatchNorm<T, true>;
template <typename T>
using BatchNormInference = BatchNorm<T, false>;

template <typename T>
struct GradientAndProduct {
  const T* x;
  const T* dy;
  HEADROOM_DEVICE Sums operator()(Index i) const {
    const double gradient = load(dy[i]);
    return {gradient, gradient * load(x[i])};
  }
};

template <typename T>
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
    const float* inverse = inverse_deviations(queue, shape_.channels, variance, epsilon_);
    const auto keep = [=] HEADROOM_DEVICE(Index c, Sums found) {
      dshift[c] = static_cast<float>(found.first);
      dscale[c] = static_cast<float>((found.second - mean[c] * found.first) * inverse[c]);
    };
    sum_channels(queue, shape_, GradientAndProduct<T>{x, dy}, keep);
    const auto share = static_cast<float>(1 / shape_.count());
    const auto gradient = [=, *this] HEADROOM_DEVICE(Index i, float value, float incoming) {
      const Index c = shape_.channel(i);
      const float normalised = (value - mean[c]) * inverse[c];
      return scale[c] * inverse[c] * (incoming - share * (dshift[c] + normalised * dscale[c]));
    };
    map(queue, shape_.elements(), gradient, x, dy, dx);
  }

 private:
  Images shape_;
  double epsilon_;
};

template <typename Queue>
Works<Queue> batch_norm_works() {
  return {
      {"batch_norm", make_typed<BatchNormTraining, Queue>},
      {"batch_norm_backward", make_typed<BatchNormBackward, Queue>},
      {"batch_norm_inference", make_typed<BatchNormInference, Queue>},
  };
}

}  // namespace headroom::cuda

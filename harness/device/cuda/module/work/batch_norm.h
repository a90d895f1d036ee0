// Batch normalisation. cuDNN's version keeps the inverse deviation where this op keeps the
// variance, and does not promise to work in place, which passes may ask for. So the sums use CUB:
// first over each plane of an image, which is contiguous, then over the images.
#pragma once

#include <cmath>

#include "harness/device/cuda/module/work/layer_norm.h"

namespace headroom::cuda {

struct Images {
  Index images, channels, plane;  // plane: height · width

  explicit Images(const Shape& x) : images(x[0]), channels(x[1]), plane(x[2] * x[3]) {}
  HEADROOM_DEVICE Index channel(Index i) const { return i / plane % channels; }
  HEADROOM_DEVICE Sums over_images(const Sums* planes, Index channel) const {
    Sums sums;
    for (Index n = 0; n < images; ++n) sums = Add{}(sums, planes[n * channels + channel]);
    return sums;
  }
  HEADROOM_DEVICE double count() const { return static_cast<double>(images * plane); }
};

HEADROOM_DEVICE inline float inverse_deviation(float variance, double epsilon) {
  return static_cast<float>(1 / std::sqrt(variance + epsilon));
}

template <typename T>
struct Normalise {
  const T* x;
  T* y;
  const float* scale;
  const float* shift;
  const float* mean;
  const float* variance;
  Images shape;
  double epsilon;

  HEADROOM_DEVICE void operator()(Index i) const {
    const Index c = shape.channel(i);
    const float inverse = inverse_deviation(variance[c], epsilon);
    store(y[i], (load(x[i]) - mean[c]) * inverse * scale[c] + shift[c]);
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
    if (kTraining) find_statistics(queue, x, mean, variance);
    queue.for_each(shape_.images * shape_.channels * shape_.plane,
                   Normalise<T>{x, elements<T>(buffers.outputs[0]), floats(buffers.inputs[1]),
                                floats(buffers.inputs[2]), mean, variance, shape_, epsilon_});
  }

  template <typename Queue>
  void find_statistics(Queue& queue, const T* x, float* mean, float* variance) const {
    const Index planes = shape_.images * shape_.channels;
    Sums* sums = queue.template scratch<Sums>(planes);
    queue.reduce_rows(planes, shape_.plane, SelfAndSquare<T>{x}, Add{}, Sums{}, sums);
    queue.for_each(shape_.channels, [=, *this] HEADROOM_DEVICE(Index c) {
      const MeanAndVariance found = mean_and_variance(shape_.over_images(sums, c), shape_.count());
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
    const Index planes = shape_.images * shape_.channels;
    Sums* sums = queue.template scratch<Sums>(planes);
    queue.reduce_rows(planes, shape_.plane, GradientAndProduct<T>{x, dy}, Add{}, Sums{}, sums);
    queue.for_each(shape_.channels, [=, *this] HEADROOM_DEVICE(Index c) {
      const Sums found = shape_.over_images(sums, c);
      dshift[c] = static_cast<float>(found.first);
      dscale[c] = static_cast<float>((found.second - mean[c] * found.first) *
                                     inverse_deviation(variance[c], epsilon_));
    });
    queue.for_each(planes * shape_.plane, [=, *this] HEADROOM_DEVICE(Index i) {
      const Index c = shape_.channel(i);
      const float inverse = inverse_deviation(variance[c], epsilon_);
      const auto share = static_cast<float>(1 / shape_.count());
      const float normalised = (load(x[i]) - mean[c]) * inverse;
      store(dx[i],
            scale[c] * inverse * (load(dy[i]) - share * (dshift[c] + normalised * dscale[c])));
    });
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

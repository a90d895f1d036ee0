// The mean of each channel of each image.
#pragma once

#include "harness/device/cuda/module/work/pixels.h"
#include "harness/device/cuda/module/work/sums.h"

namespace headroom::cuda {

template <typename T>
struct InDouble {
  const T* x;
  Index width;
  HEADROOM_DEVICE double operator()(Index row, Index column) const {
    return load(x[row * width + column]);
  }
};

template <typename T>
class AveragePool {
 public:
  AveragePool(const Op& op, const Program& program)
      : planes_(count_of(program, op.outputs[0])),
        plane_(count_of(program, op.inputs[0]) / planes_) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    T* y = elements<T>(buffers.outputs[0]);
    auto* sums = queue.template scratch<double>(planes_);
    queue.reduce_rows(planes_, plane_, InDouble<T>{elements<T>(buffers.inputs[0]), plane_}, Add{},
                      0.0, sums);
    queue.for_each(planes_, [=, *this] HEADROOM_DEVICE(Index i) {
      store(y[i], static_cast<float>(sums[i] / static_cast<double>(plane_)));
    });
  }

 private:
  Index planes_, plane_;
};

template <typename T>
class AveragePoolBackward {
 public:
  AveragePoolBackward(const Op& op, const Program& program)
      : count_(count_of(program, op.outputs[0])),
        plane_(count_ / count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T* dy = elements<T>(buffers.inputs[0]);
    T* dx = elements<T>(buffers.outputs[0]);
    queue.for_each(count_, [=, *this] HEADROOM_DEVICE(Index i) {
      store(dx[i], load(dy[i / plane_]) / static_cast<float>(plane_));
    });
  }

 private:
  Index count_;
  Divisor plane_;
};

// The images are channels-last.
template <typename T, int n>
struct AverageColumn {
  const T* x;
  T* y;
  Divisor columns;
  Index plane;

  HEADROOM_DEVICE void operator()(Index i) const {
    const Index image = i / columns, column = i - image * columns, channels = columns * n;
    const T* const from = x + image * plane * channels + column * n;
    double sums[n] = {};
    for (Index pixel = 0; pixel < plane; ++pixel) {
      Neighbours<T, n> in;
      in.load(from + pixel * channels, n);
      for (int k = 0; k < n; ++k) sums[k] += load(in.of[k]);
    }
    Neighbours<T, n> out;
    for (int k = 0; k < n; ++k)
      store(out.of[k], static_cast<float>(sums[k] / static_cast<double>(plane)));
    out.store(y + i * n, n);
  }
};

template <typename T, int n>
struct SpreadColumn {
  const T* dy;
  T* dx;
  Divisor columns, plane;

  HEADROOM_DEVICE void operator()(Index i) const {
    const Index pixel = i / columns, column = i - pixel * columns;
    Neighbours<T, n> in, out;
    in.load(dy + (pixel / plane * columns + column) * n, n);
    for (int k = 0; k < n; ++k) store(out.of[k], load(in.of[k]) / static_cast<float>(Index{plane}));
    out.store(dx + i * n, n);
  }
};

template <typename Queue>
Work<Queue> make_average_pool(const Op& op, const Program& program) {
  const Value& x = program.value(op.inputs[0]);
  if (!is_channels_last(x)) return make_typed<AveragePool, Queue>(op, program);
  return for_columns_of(x, [&]<typename T, int n>(T, std::integral_constant<int, n>) {
    const Index columns = x.shape[1] / n, plane = x.shape[2] * x.shape[3];
    return Work<Queue>([=, images = x.shape[0]](Queue& queue, const OpBuffers& buffers) {
      queue.for_each(images * columns,
                     AverageColumn<T, n>{elements<T>(buffers.inputs[0]),
                                         elements<T>(buffers.outputs[0]), columns, plane});
    });
  });
}

template <typename Queue>
Work<Queue> make_average_pool_backward(const Op& op, const Program& program) {
  const Value& dx = program.value(op.outputs[0]);
  if (!is_channels_last(dx)) return make_typed<AveragePoolBackward, Queue>(op, program);
  return for_columns_of(dx, [&]<typename T, int n>(T, std::integral_constant<int, n>) {
    const Index columns = dx.shape[1] / n, plane = dx.shape[2] * dx.shape[3];
    return Work<Queue>([=, images = dx.shape[0]](Queue& queue, const OpBuffers& buffers) {
      queue.for_each(images * plane * columns,
                     SpreadColumn<T, n>{elements<T>(buffers.inputs[0]),
                                        elements<T>(buffers.outputs[0]), columns, plane});
    });
  });
}

template <typename Queue>
Works<Queue> average_pool_works() {
  return {
      {"global_average_pool", make_average_pool<Queue>},
      {"global_average_pool_backward", make_average_pool_backward<Queue>},
  };
}

}  // namespace headroom::cuda

// Max pooling. cuDNN's backward pass reads x and y, which these Programs free; they keep the place
// of each maximum within its window instead, in one byte.
#pragma once

#include <string>

#include "harness/base/error.h"
#include "harness/device/cuda/module/work/pixels.h"

namespace headroom::cuda {

struct PoolWindow {
  Divisor height, width;          // of x
  Divisor out_height, out_width;  // of y
  Index kernel_height, kernel_width;
  Divisor stride_height, stride_width;
  Index top, left;

  PoolWindow(const Op& op, const Shape& x, const Shape& y)
      : height(x[2]),
        width(x[3]),
        out_height(y[2]),
        out_width(y[3]),
        kernel_height(op.list("kernel")[0]),
        kernel_width(op.list("kernel")[1]),
        stride_height(op.list("strides")[0]),
        stride_width(op.list("strides")[1]),
        top(op.list("padding")[0]),
        left(op.list("padding")[1]) {
    if (kernel_height * kernel_width > 256)
      throw InputError(op.name + ": a place in a window of " + std::to_string(kernel_height) + "x" +
                       std::to_string(kernel_width) + " does not fit in one byte");
  }
};

// A NaN counts as larger than every number, so that it is not lost.
HEADROOM_DEVICE inline bool is_larger(float candidate, float largest) {
  return candidate > largest || (candidate != candidate && largest == largest);
}

template <typename T>
struct FindMaximum {
  const T* x;
  T* y;
  std::uint8_t* places;
  PoolWindow window;

  HEADROOM_DEVICE void operator()(Index i) const {
    const Index line = i / window.out_width, column = i % window.out_width;
    const Index row = line % window.out_height;
    const T* plane = x + line / window.out_height * window.height * window.width;
    bool found = false;
    T largest{};
    Index place = 0;
    for (Index kh = 0; kh < window.kernel_height; ++kh)
      for (Index kw = 0; kw < window.kernel_width; ++kw) {
        const Index h = row * window.stride_height + kh - window.top;
        const Index w = column * window.stride_width + kw - window.left;
        if (h < 0 || h >= window.height || w < 0 || w >= window.width) continue;
        const T candidate = plane[h * window.width + w];
        if (found && !is_larger(load(candidate), load(largest))) continue;
        found = true;
        largest = candidate;
        place = kh * window.kernel_width + kw;
      }
    y[i] = largest;
    places[i] = static_cast<std::uint8_t>(place);
  }
};

// The first and the last window along one side that a pixel is in, which may be none.
HEADROOM_DEVICE inline int first_window(int place, Index kernel, const Divisor& stride) {
  return place < kernel ? 0 : static_cast<int>((place - kernel) / stride) + 1;
}
HEADROOM_DEVICE inline int last_window(int place, const Divisor& stride, const Divisor& windows) {
  const int found = static_cast<int>(Index{place} / stride), end = static_cast<int>(windows);
  return found < end ? found : end - 1;
}

// Gradient of one pixel: the sum over the windows whose maximum it was, always in the same order.
template <typename T>
struct CollectMaxima {
  const T* dy;
  const std::uint8_t* places;
  T* dx;
  PoolWindow window;

  // Positions in an image are plain ints: 64-bit ones would need too many registers.
  HEADROOM_DEVICE void operator()(Index i) const {
    const Index line = i / window.width;
    const int from_top = static_cast<int>(line % window.height + window.top);
    const int from_left = static_cast<int>(i % window.width + window.left);
    const int last_row = last_window(from_top, window.stride_height, window.out_height);
    const int last_column = last_window(from_left, window.stride_width, window.out_width);
    const auto wide = static_cast<int>(window.out_width);
    const Index plane = line / window.height * window.out_height * window.out_width;
    float sum = 0;
    for (int row = first_window(from_top, window.kernel_height, window.stride_height);
         row <= last_row; ++row)
      for (int column = first_window(from_left, window.kernel_width, window.stride_width);
           column <= last_column; ++column) {
        const int down = from_top - row * static_cast<int>(window.stride_height);
        const int across = from_left - column * static_cast<int>(window.stride_width);
        const Index at = plane + row * wide + column;
        if (places[at] == down * static_cast<int>(window.kernel_width) + across)
          sum += load(dy[at]);
      }
    store(dx[i], sum);
  }
};

// n neighbouring channels of channels-last images.
template <typename T, int n>
struct FindMaximaOfColumn {
  const T* x;
  T* y;
  std::uint8_t* places;
  PoolWindow window;
  Divisor columns;

  HEADROOM_DEVICE void operator()(Index i) const {
    const Index pixel = i / columns, line = pixel / window.out_width,
                image = line / window.out_height;
    const auto top =
        static_cast<int>((line - image * window.out_height) * window.stride_height - window.top);
    const auto left =
        static_cast<int>((pixel - line * window.out_width) * window.stride_width - window.left);
    const auto high = static_cast<int>(window.height), wide = static_cast<int>(window.width);
    const T* const from = x + (image * high * wide * columns + i - pixel * columns) * n;
    bool found = false;
    Neighbours<T, n> largest{};
    Neighbours<std::uint8_t, n> at{};
    int place = 0;
    for (int h = top; h < top + static_cast<int>(window.kernel_height); ++h)
      for (int w = left; w < left + static_cast<int>(window.kernel_width); ++w, ++place) {
        if (h < 0 || h >= high || w < 0 || w >= wide) continue;
        Neighbours<T, n> candidates;
        candidates.load(from + (h * wide + w) * columns * n, n);
        for (int k = 0; k < n; ++k)
          if (!found || is_larger(load(candidates.of[k]), load(largest.of[k]))) {
            largest.of[k] = candidates.of[k];
            at.of[k] = static_cast<std::uint8_t>(place);
          }
        found = true;
      }
    largest.store(y + i * n, n);
    at.store(places + i * n, n);
  }
};

template <typename T, int n>
struct CollectMaximaOfColumn {
  const T* dy;
  const std::uint8_t* places;
  T* dx;
  PoolWindow window;
  Divisor columns;

  HEADROOM_DEVICE void operator()(Index i) const {
    const Index pixel = i / columns, line = pixel / window.width, image = line / window.height;
    const auto from_top = static_cast<int>(line - image * window.height + window.top);
    const auto from_left = static_cast<int>(pixel - line * window.width + window.left);
    const int last_row = last_window(from_top, window.stride_height, window.out_height);
    const int last_column = last_window(from_left, window.stride_width, window.out_width);
    const auto high = static_cast<int>(window.out_height),
               wide = static_cast<int>(window.out_width);
    const Index first = (image * high * wide * columns + i - pixel * columns) * n;
    float sums[n] = {};
    for (int row = first_window(from_top, window.kernel_height, window.stride_height);
         row <= last_row; ++row)
      for (int column = first_window(from_left, window.kernel_width, window.stride_width);
           column <= last_column; ++column) {
        const int down = from_top - row * static_cast<int>(window.stride_height);
        const int across = from_left - column * static_cast<int>(window.stride_width);
        const Index at = first + (row * wide + column) * columns * n;
        Neighbours<std::uint8_t, n> place;
        Neighbours<T, n> incoming;
        place.load(places + at, n);
        incoming.load(dy + at, n);
        for (int k = 0; k < n; ++k)
          if (place.of[k] == down * static_cast<int>(window.kernel_width) + across)
            sums[k] += load(incoming.of[k]);
      }
    Neighbours<T, n> out;
    for (int k = 0; k < n; ++k) store(out.of[k], sums[k]);
    out.store(dx + i * n, n);
  }
};

template <typename T>
class MaxPool {
 public:
  MaxPool(const Op& op, const Program& program)
      : window_(op, program.value(op.inputs[0]).shape, program.value(op.outputs[0]).shape),
        count_(count_of(program, op.outputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    queue.for_each(count_,
                   FindMaximum<T>{elements<T>(buffers.inputs[0]), elements<T>(buffers.outputs[0]),
                                  elements<std::uint8_t>(buffers.outputs[1]), window_});
  }

 private:
  PoolWindow window_;
  Index count_;
};

template <typename T>
class MaxPoolBackward {
 public:
  MaxPoolBackward(const Op& op, const Program& program)
      : window_(op, program.value(op.outputs[0]).shape, program.value(op.inputs[0]).shape),
        count_(count_of(program, op.outputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    queue.for_each(count_, CollectMaxima<T>{elements<T>(buffers.inputs[0]),
                                            elements<std::uint8_t>(buffers.inputs[1]),
                                            elements<T>(buffers.outputs[0]), window_});
  }

 private:
  PoolWindow window_;
  Index count_;
};

template <typename Queue>
Work<Queue> make_max_pool(const Op& op, const Program& program) {
  const Value &x = program.value(op.inputs[0]), &y = program.value(op.outputs[0]);
  if (!is_channels_last(x)) return make_typed<MaxPool, Queue>(op, program);
  const PoolWindow window(op, x.shape, y.shape);
  return for_columns_of(x, [&]<typename T, int n>(T, std::integral_constant<int, n>) {
    const Index columns = y.shape[1] / n, count = element_count(y.shape) / n;
    return Work<Queue>([=](Queue& queue, const OpBuffers& buffers) {
      queue.for_each(count, FindMaximaOfColumn<T, n>{
                                elements<T>(buffers.inputs[0]), elements<T>(buffers.outputs[0]),
                                elements<std::uint8_t>(buffers.outputs[1]), window, columns});
    });
  });
}

template <typename Queue>
Work<Queue> make_max_pool_backward(const Op& op, const Program& program) {
  const Value &dy = program.value(op.inputs[0]), &dx = program.value(op.outputs[0]);
  if (!is_channels_last(dx)) return make_typed<MaxPoolBackward, Queue>(op, program);
  const PoolWindow window(op, dx.shape, dy.shape);
  return for_columns_of(dx, [&]<typename T, int n>(T, std::integral_constant<int, n>) {
    const Index columns = dx.shape[1] / n, count = element_count(dx.shape) / n;
    return Work<Queue>([=](Queue& queue, const OpBuffers& buffers) {
      queue.for_each(count,
                     CollectMaximaOfColumn<T, n>{elements<T>(buffers.inputs[0]),
                                                 elements<std::uint8_t>(buffers.inputs[1]),
                                                 elements<T>(buffers.outputs[0]), window, columns});
    });
  });
}

template <typename Queue>
Works<Queue> max_pool_works() {
  return {
      {"max_pool", make_max_pool<Queue>},
      {"max_pool_backward", make_max_pool_backward<Queue>},
  };
}

}  // namespace headroom::cuda

// Casts between element types and between the orders of images in memory.
#pragma once

#include "harness/device/cuda/module/work/elementwise.h"
#include "harness/program/lowering/channels_last.h"

namespace headroom::cuda {

struct Same {
  HEADROOM_DEVICE float operator()(float x) const { return x; }
};

template <typename From, typename To>
class Cast {
 public:
  explicit Cast(Index count) : count_(count) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const From* x = elements<From>(buffers.inputs[0]);
    map(queue, count_, Anywhere<Same>{}, x, elements<To>(buffers.outputs[0]));
  }

 private:
  Index count_;
};

// y[n, c, r] = x[n, r, c]. Neighbouring threads read neighbouring columns, and each writes up to 8
// neighbours.
template <typename From, typename To>
struct TurnMatrices {
  static constexpr Index kEach = 8;
  const From* x;
  To* y;
  Index rows;
  Divisor columns, groups;  // of kEach rows

  HEADROOM_DEVICE void operator()(Index i) const {
    const Index of_all = i / columns, column = i - of_all * columns, matrix = of_all / groups;
    const Index first = (of_all - matrix * groups) * kEach, left = rows - first;
    const From* const from = x + (matrix * rows + first) * columns + column;
    To* const to = y + (matrix * columns + column) * rows + first;
    Neighbours<To, kEach> turned{};
    for (int k = 0; k < kEach; ++k)
      if (k < left) host::store(turned.of[k], host::load(from[k * columns]));
    if (rows % kEach == 0) return turned.store(to, kEach);
    for (int k = 0; k < kEach; ++k)
      if (k < left) to[k] = turned.of[k];
  }
};

template <typename From, typename To>
class Turn {
 public:
  Turn(Index matrices, Index rows, Index columns)
      : matrices_(matrices), rows_(rows), columns_(columns) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    using Turning = TurnMatrices<From, To>;
    const Index groups = (rows_ + Turning::kEach - 1) / Turning::kEach;
    queue.for_each(matrices_ * groups * columns_,
                   Turning{elements<From>(buffers.inputs[0]), elements<To>(buffers.outputs[0]),
                           rows_, columns_, groups});
  }

 private:
  Index matrices_, rows_, columns_;
};

template <typename Queue>
Work<Queue> make_cast(const Op& op, const Program& program) {
  const Value &from = program.value(op.inputs[0]), &to = program.value(op.outputs[0]);
  return host::for_type_of(from, [&]<typename From>(From) {
    return host::for_type_of(to, [&]<typename To>(To) -> Work<Queue> {
      if (is_channels_last(from) == is_channels_last(to))
        return Cast<From, To>(element_count(to.shape));
      const Index channels = to.shape.at(1), pixels = to.shape.at(2) * to.shape.at(3);
      if (is_channels_last(to)) return Turn<From, To>(to.shape[0], channels, pixels);
      return Turn<From, To>(to.shape[0], pixels, channels);
    });
  });
}

template <typename Queue>
Works<Queue> cast_works() {
  return {{"cast", make_cast<Queue>}, {"reorder", make_cast<Queue>}};
}

}  // namespace headroom::cuda

// The softmax of attention. One reduction finds both the largest score of each row and the sum of
// exponentials shifted by it.
#pragma once

#include <cmath>
#include <limits>

#include "harness/device/cuda/module/work/map.h"

namespace headroom::cuda {

// State over the scores seen so far; before any score, the lowest number and a sum of 0.
struct Exponentials {
  float largest = -std::numeric_limits<float>::max();
  float sum = 0;
};

// Shifts both sums by the larger maximum, so that no exponential overflows.
struct CombineExponentials {
  float scale;
  HEADROOM_DEVICE Exponentials operator()(Exponentials a, Exponentials b) const {
    const float largest = a.largest > b.largest ? a.largest : b.largest;
    return {largest, a.sum * std::exp(scale * (a.largest - largest)) +
                         b.sum * std::exp(scale * (b.largest - largest))};
  }
};

// The mask that hides padding keys from queries. A row holds the scores of one query.
struct Padding {
  const std::int32_t* mask;
  Index width;
  Divisor rows_of_sample;
  HEADROOM_DEVICE bool hides(Index row, Index column) const {
    return mask[row / rows_of_sample * width + column] == 0;
  }
};
struct Future {
  Divisor width;
  HEADROOM_DEVICE bool hides(Index row, Index column) const { return column > row % width; }
};

template <typename T, typename Mask>
struct MaskedScore {
  const T* x;
  Index width;
  Mask mask;
  HEADROOM_DEVICE Exponentials operator()(Index row, Index column) const {
    return mask.hides(row, column) ? Exponentials{}
                                   : Exponentials{load(x[row * width + column]), 1};
  }
};

template <typename Mask>
struct WriteSoftmax {
  const Exponentials* rows;
  Mask mask;
  float scale;

  HEADROOM_DEVICE float operator()(Index row, Index column, float score) const {
    const Exponentials of = rows[row];
    const float share = of.sum == 0 ? 0 : 1 / of.sum;  // 0 for a row that is all padding
    return mask.hides(row, column) ? 0 : std::exp(scale * (score - of.largest)) * share;
  }
};

template <typename T, bool kCausal>
class AttentionSoftmax {
 public:
  AttentionSoftmax(const Op& op, const Program& program)
      : count_(count_of(program, op.inputs[0])),
        width_(program.value(op.inputs[0]).shape[3]),
        rows_of_sample_(count_ / program.value(op.inputs[0]).shape[0] / width_),
        scale_(static_cast<float>(op.number("scale"))) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    if constexpr (kCausal)
      run(queue, buffers, Future{width_});
    else
      run(queue, buffers, Padding{whole_numbers(buffers.inputs[1]), width_, rows_of_sample_});
  }

 private:
  template <typename Queue, typename Mask>
  void run(Queue& queue, const OpBuffers& buffers, Mask mask) const {
    const T* x = elements<T>(buffers.inputs[0]);
    const Index rows = count_ / width_;
    auto* found = queue.template scratch<Exponentials>(rows);
    queue.reduce_rows(rows, width_, MaskedScore<T, Mask>{x, width_, mask},
                      CombineExponentials{scale_}, Exponentials{}, found);
    map_rows(queue, count_, width_, WriteSoftmax<Mask>{found, mask, scale_}, x,
             elements<T>(buffers.outputs[0]));
  }

  Index count_;
  Index width_, rows_of_sample_;
  float scale_;
};
template <typename T>
using MaskedSoftmax = AttentionSoftmax<T, false>;
template <typename T>
using CausalSoftmax = AttentionSoftmax<T, true>;

struct AddFloats {
  HEADROOM_DEVICE float operator()(float a, float b) const { return a + b; }
};

template <typename T>
struct ElementProduct {
  const T* a;
  const T* b;
  Index width;
  HEADROOM_DEVICE float operator()(Index row, Index column) const {
    const Index i = row * width + column;
    return load(a[i]) * load(b[i]);
  }
};

template <typename T>
class SoftmaxBackward {
 public:
  SoftmaxBackward(const Op& op, const Program& program)
      : count_(count_of(program, op.inputs[0])),
        width_(program.value(op.inputs[0]).shape[3]),
        scale_(static_cast<float>(op.number("scale"))) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T *y = elements<T>(buffers.inputs[0]), *dy = elements<T>(buffers.inputs[1]);
    T* dx = elements<T>(buffers.outputs[0]);
    auto* products = queue.template scratch<float>(count_ / width_);
    queue.reduce_rows(count_ / width_, width_, ElementProduct<T>{y, dy, width_}, AddFloats{}, 0.0F,
                      products);
    const auto gradient = [=, *this] HEADROOM_DEVICE(Index row, Index, float value,
                                                     float incoming) {
      return scale_ * value * (incoming - products[row]);
    };
    map_rows(queue, count_, width_, gradient, y, dy, dx);
  }

 private:
  Index count_, width_;
  float scale_;
};

template <typename Queue>
Works<Queue> softmax_works() {
  return {
      {"causal_softmax", make_typed<CausalSoftmax, Queue>},
      {"masked_softmax", make_typed<MaskedSoftmax, Queue>},
      {"masked_softmax_backward", make_typed<SoftmaxBackward, Queue>},
  };
}

}  // namespace headroom::cuda

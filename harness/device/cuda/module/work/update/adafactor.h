// Adafactor (Shazeer and Stern 2018). No update of the weight's size is stored; it is computed
// twice, once for its norm and once to be applied.
#pragma once

#include <cmath>

#include "harness/device/cuda/module/work/sums.h"

namespace headroom::cuda {

struct AdafactorRule {
  double clip_threshold, decay_rate, epsilon1, epsilon2, learning_rate;
  bool relative;

  HEADROOM_DEVICE float decayed(float old, double now, double steps) const {
    const double decay = 1 - std::pow(steps, -decay_rate);
    return static_cast<float>(decay * old + (1 - decay) * now);
  }
  // The factor of an update, from the sums of squares of the update and of the weight.
  HEADROOM_DEVICE float scale(Sums squares, double count, double steps) const {
    double rate = learning_rate;
    if (relative) {
      const double size = std::sqrt(squares.second / count), slow = 1 / std::sqrt(steps);
      rate = (size > epsilon2 ? size : epsilon2) * (slow < 0.01 ? slow : 0.01);
    }
    const double clip = std::sqrt(squares.first / count) / clip_threshold;
    return static_cast<float>(rate / (clip > 1 ? clip : 1));
  }
};

// g^2 + epsilon1, per element, row and column.
struct GradientSquare {
  const float* gradient;
  double epsilon;
  Index columns;
  HEADROOM_DEVICE double operator()(Index i) const {
    return double{gradient[i]} * gradient[i] + epsilon;
  }
  HEADROOM_DEVICE Sums operator()(Index row, Index column) const {
    return {(*this)(row * columns + column), 0};
  }
};

struct AdafactorUpdate {
  const float* gradient;
  const float* weight;
  const float* square;         // of each row, or of each element
  const float* column_square;  // null where squares are not factored
  const double* row_sum;
  Index rows;
  Divisor columns;

  HEADROOM_DEVICE float at(Index i) const {
    if (column_square == nullptr) return gradient[i] / std::sqrt(square[i]);
    const auto mean = static_cast<float>(*row_sum / static_cast<double>(rows));
    return gradient[i] / std::sqrt(square[i / columns] / mean * column_square[i % columns]);
  }
  HEADROOM_DEVICE Sums operator()(Index i) const {
    const double update = at(i), w = weight[i];
    return {update * update, w * w};
  }
};

struct FloatInDouble {
  const float* x;
  HEADROOM_DEVICE double operator()(Index i) const { return x[i]; }
};

// A conditional op must not change states when it is skipped, so they change only in for_each, from
// sums in scratch.
class Adafactor {
 public:
  Adafactor(const Op& op, const Program& program)
      : rule_{op.number("clip_threshold"), op.number("decay_rate"),    op.number("epsilon1"),
              op.number("epsilon2"),       op.number("learning_rate"), op.integer("relative") == 1},
        factored_(op.inputs.size() == 5),
        count_(count_of(program, op.inputs[0])),
        rows_(program.value(op.inputs[0]).shape[0]),
        columns_(count_ / rows_) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float *weight = floats(buffers.inputs[0]), *square = floats(buffers.inputs[2]);
    const float* gradient = floats(buffers.inputs[1]);
    float* column_square = factored_ ? floats(buffers.inputs[3]) : nullptr;
    const float* steps = floats(buffers.inputs[factored_ ? 4 : 3]);
    const GradientSquare squared = {gradient, rule_.epsilon1, columns_};
    auto* row_sum = queue.template scratch<double>(1);
    if (factored_)
      decay_factors(queue, squared, square, column_square, steps, row_sum);
    else
      queue.for_each(count_, [=, *this] HEADROOM_DEVICE(Index i) {
        square[i] = rule_.decayed(square[i], squared(i), *steps);
      });
    const AdafactorUpdate update = {gradient, weight, square,  column_square,
                                    row_sum,  rows_,  columns_};
    auto* squares = queue.template scratch<Sums>(1);
    queue.reduce(count_, update, Add{}, Sums{}, squares);
    queue.for_each(count_, [=, *this] HEADROOM_DEVICE(Index i) {
      weight[i] -= rule_.scale(*squares, static_cast<double>(count_), *steps) * update.at(i);
    });
  }

  template <typename Queue>
  void decay_factors(Queue& queue, GradientSquare squared, float* row_square, float* column_square,
                     const float* steps, double* row_sum) const {
    auto* sums = queue.template scratch<Sums>(rows_);
    queue.reduce_rows(rows_, columns_, squared, Add{}, Sums{}, sums);
    queue.for_each(rows_, [=, *this] HEADROOM_DEVICE(Index i) {
      row_square[i] =
          rule_.decayed(row_square[i], sums[i].first / static_cast<double>(columns_), *steps);
    });
    sum_columns(queue, rows_, columns_, squared, [=, *this] HEADROOM_DEVICE(Index j, Sums found) {
      column_square[j] =
          rule_.decayed(column_square[j], found.first / static_cast<double>(rows_), *steps);
    });
    queue.reduce(rows_, FloatInDouble{row_square}, Add{}, 0.0, row_sum);
  }

 private:
  AdafactorRule rule_;
  bool factored_;
  Index count_, rows_, columns_;
};

template <typename Queue>
Works<Queue> adafactor_works() {
  return {{"adafactor", make<Adafactor, Queue>}};
}

}  // namespace headroom::cuda

// Gathers rows by index. An invalid index cannot stop the program here as it does on the host, so
// its elements become NaN, and with them the loss.
#pragma once

#include <limits>

#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

class GatherRows {
 public:
  GatherRows(const Op& op, const Program& program)
      : rows_(program.value(op.inputs[0]).shape[0]),
        columns_(program.value(op.inputs[0]).shape[1]),
        picked_(program.value(op.inputs[1]).shape[0]) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const float* x = floats(buffers.inputs[0]);
    const std::int32_t* rows = whole_numbers(buffers.inputs[1]);
    float* y = floats(buffers.outputs[0]);
    queue.for_each(picked_ * columns_, [=, *this] HEADROOM_DEVICE(Index i) {
      const Index row = rows[i / columns_];
      y[i] = row < 0 || row >= rows_ ? std::numeric_limits<float>::quiet_NaN()
                                     : x[row * columns_ + i % columns_];
    });
  }

 private:
  Index rows_;
  Divisor columns_;
  Index picked_;
};

// Sorting by row makes the gradients of one row adjacent and keeps their order, so each sum has one
// fixed order; atomic additions would not. A row that is picked more often than a chunk holds is
// summed chunk by chunk, because one thread would take all of a batch where few rows are picked.
class GatherRowsBackward {
 public:
  static constexpr Index kChunk = 64;

  GatherRowsBackward(const Op& op, const Program& program)
      : rows_(program.value(op.outputs[0]).shape[0]),
        columns_(program.value(op.outputs[0]).shape[1]),
        picked_(program.value(op.inputs[0]).shape[0]) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const std::int32_t* rows = whole_numbers(buffers.inputs[0]);
    const float* dy = floats(buffers.inputs[1]);
    float* dx = floats(buffers.outputs[0]);
    auto* places = queue.template scratch<std::int32_t>(picked_);
    auto* row_at = queue.template scratch<std::int32_t>(picked_);
    auto* place_at = queue.template scratch<std::int32_t>(picked_);
    queue.for_each(picked_,
                   [=] HEADROOM_DEVICE(Index i) { places[i] = static_cast<std::int32_t>(i); });
    queue.sort_pairs(rows, row_at, places, place_at, picked_);
    queue.for_each(rows_ * columns_, [=] HEADROOM_DEVICE(Index i) { dx[i] = 0; });
    const Index chunks = (picked_ + kChunk - 1) / kChunk;
    auto* begins =
        queue.template scratch<float>(chunks * columns_);  // sums of each chunk's first row
    queue.for_each(chunks * columns_, [=, *this] HEADROOM_DEVICE(Index i) {
      begins[i] = sum_from(i / columns_ * kChunk, row_at, place_at, dy + i % columns_);
    });
    queue.for_each(picked_ * columns_, [=, *this] HEADROOM_DEVICE(Index i) {
      const Index first = i / columns_, column = i % columns_;
      const std::int32_t row = row_at[first];
      if (row < 0 || row >= rows_ || (first > 0 && row_at[first - 1] == row)) return;
      float sum = sum_from(first, row_at, place_at, dy + column);
      for (Index c = first / kChunk + 1; c < chunks && row_at[c * kChunk] == row; ++c)
        sum += begins[c * columns_ + column];
      dx[row * columns_ + column] = sum;
    });
  }

 private:
  // Sums one column over the places of one row, from `first` to the end of its chunk.
  HEADROOM_DEVICE float sum_from(Index first, const std::int32_t* row_at,
                                 const std::int32_t* place_at, const float* column) const {
    const Index end = (first / kChunk + 1) * kChunk;
    float sum = 0;
    for (Index k = first; k < end && k < picked_ && row_at[k] == row_at[first]; ++k)
      sum += column[place_at[k] * columns_];
    return sum;
  }

  Index rows_;
  Divisor columns_;
  Index picked_;
};

template <typename Queue>
Works<Queue> gather_works() {
  return {
      {"gather_rows", make<GatherRows, Queue>},
      {"gather_rows_backward", make<GatherRowsBackward, Queue>},
  };
}

}  // namespace headroom::cuda

// Sums that several kernels need, in double, because normalisations subtract nearly equal sums.
#pragma once

#include <algorithm>
#include <type_traits>

#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

struct Sums {
  double first = 0, second = 0;
};

// Sums of a few products of 16-bit elements, which f32 holds exactly or nearly so. GPUs without
// fast arithmetic in double have a 32nd or 64th of the rate of f32 (CUDA C++ Programming Guide,
// "Arithmetic Instructions").
struct FewSums {
  float first, second;
  HEADROOM_DEVICE operator Sums() const { return {first, second}; }  // NOLINT(google-explicit-*)
};

// The type in which functions of elements of type T return their terms of two sums.
template <typename T>
using SumsOf = std::conditional_t<sizeof(T) == 2, FewSums, Sums>;

struct Add {
  template <typename T>
  HEADROOM_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
  HEADROOM_DEVICE Sums operator()(Sums a, Sums b) const {
    return {a.first + b.first, a.second + b.second};
  }
  HEADROOM_DEVICE FewSums operator()(FewSums a, FewSums b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

// The parts of each sum, side by side.
struct Part {
  const Sums* parts;
  Index width;
  HEADROOM_DEVICE Sums operator()(Index row, Index column) const {
    return parts[row * width + column];
  }
};

template <typename Finish>
struct FinishSum {
  Finish finish;
  const Sums* sums;
  HEADROOM_DEVICE void operator()(Index i) const { finish(i, sums[i]); }
};

// Calls finish(i, sum of the i-th `width` parts) for each i below `count`.
template <typename Queue, typename Finish>
void finish_sums(Queue& queue, Index count, Index width, const Sums* parts, Finish finish) {
  Sums* sums = queue.template scratch<Sums>(count);
  queue.reduce_rows(count, width, Part{parts, width}, Add{}, Sums{}, sums);
  queue.for_each(count, FinishSum<Finish>{finish, sums});
}

// value(r, c) as reduce_columns takes it.
template <typename Value>
struct EachColumn {
  Value value;

  struct Column {
    Value value;
    Index column;
    HEADROOM_DEVICE auto operator()(Index row) const { return value(row, column); }
  };
  HEADROOM_DEVICE Column of_column(Index column) const { return {value, column}; }
};

// Calls finish(c, sums of value(r, c) over all r) for each column c. Uses just enough groups of
// rows to keep a GPU busy, because their sums take workspace.
template <typename Queue, typename Value, typename Finish>
void sum_columns(Queue& queue, Index rows, Index columns, Value value, Finish finish) {
  constexpr Index kColumnsAndGroups = 65535, kRowsOfGroup = 32;  // a grid has no more blocks in y
  const Index most = std::max<Index>(1, rows / kRowsOfGroup);
  const Index groups = std::clamp<Index>(kColumnsAndGroups / columns, 1, most);
  Sums* parts = queue.template scratch<Sums>(groups * columns);
  queue.reduce_columns(groups, rows, columns, EachColumn<Value>{value}, Add{}, Sums{}, parts);
  finish_sums(queue, columns, groups, parts, finish);
}

}  // namespace headroom::cuda

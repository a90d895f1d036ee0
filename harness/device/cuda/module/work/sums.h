// Sums that several kernels need, in double, because normalisations subtract nearly equal sums.
#pragma once

#include <algorithm>

#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

struct Sums {
  double first = 0, second = 0;
};

struct Add {
  template <typename T>
  HEADROOM_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
  HEADROOM_DEVICE Sums operator()(Sums a, Sums b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

// Sums one column over one group of rows; neighbouring columns read adjacent memory.
template <typename Value>
struct SumGroup {
  Value value;
  Sums* parts;  // those of one column side by side
  Index rows;
  Divisor columns, groups;

  HEADROOM_DEVICE void operator()(Index i) const {
    const Index group = i / columns, column = i % columns;
    Sums sums;
    for (Index r = group * rows / groups; r < (group + 1) * rows / groups; ++r)
      sums = Add{}(sums, value(r, column));
    parts[column * groups + group] = sums;
  }
};

struct Part {
  const Sums* parts;
  HEADROOM_DEVICE Sums operator()(Index i) const { return parts[i]; }
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
  queue.reduce_rows(count, width, Part{parts}, Add{}, Sums{}, sums);
  queue.for_each(count, FinishSum<Finish>{finish, sums});
}

// Calls finish(c, sums of value(r, c) over all r) for each column c. Uses just enough groups of
// rows to keep a GPU busy, because their sums take workspace.
template <typename Queue, typename Value, typename Finish>
void sum_columns(Queue& queue, Index rows, Index columns, Value value, Finish finish) {
  constexpr Index kThreads = Index{1} << 17;
  const Index groups = std::clamp<Index>(kThreads / columns, 1, rows);
  Sums* parts = queue.template scratch<Sums>(groups * columns);
  queue.for_each(groups * columns, SumGroup<Value>{value, parts, rows, columns, groups});
  finish_sums(queue, columns, groups, parts, finish);
}

}  // namespace headroom::cuda

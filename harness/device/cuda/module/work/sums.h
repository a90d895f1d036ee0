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
  Sums* parts;
  Index rows, columns, groups;

  HEADROOM_DEVICE void operator()(Index i) const {
    const Index group = i / columns, column = i % columns;
    Sums sums;
    for (Index r = group * rows / groups; r < (group + 1) * rows / groups; ++r)
      sums = Add{}(sums, value(r, column));
    parts[i] = sums;
  }
};

template <typename Finish>
struct SumGroups {
  Finish finish;
  const Sums* parts;
  Index columns, groups;

  HEADROOM_DEVICE void operator()(Index column) const {
    Sums sums;
    for (Index g = 0; g < groups; ++g) sums = Add{}(sums, parts[g * columns + column]);
    finish(column, sums);
  }
};

// Calls finish(c, sums of value(r, c) over all r) for each column c. Uses just enough groups of
// rows to keep a GPU busy, because their sums take workspace.
template <typename Queue, typename Value, typename Finish>
void sum_columns(Queue& queue, Index rows, Index columns, Value value, Finish finish) {
  constexpr Index kThreads = Index{1} << 17;
  const Index groups = std::clamp<Index>(kThreads / columns, 1, rows);
  Sums* parts = queue.template scratch<Sums>(groups * columns);
  queue.for_each(groups * columns, SumGroup<Value>{value, parts, rows, columns, groups});
  queue.for_each(columns, SumGroups<Finish>{finish, parts, columns, groups});
}

}  // namespace headroom::cuda

// Finds the smallest capacity that serves all requests of a cell, when one capacity says nothing
// about others.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

using CapacityServes = std::function<bool(Bytes capacity)>;

// The smallest capacity that was tried such that it and all larger ones of a grid serve all
// requests. More memory does not always help: holes are capacities of the grid below it that fail
// although a smaller one serves.
struct ViableCapacity {
  std::optional<Bytes> smallest;  // absent if even the grid's last fails
  Bytes resolution = 0;           // `smallest` less this fails; 0 = the lowest capacity serves
  std::vector<Bytes> holes;
  Bytes first = 0, last = 0;  // of the grid
  int points = 0;             // of the grid
};

// The grid has `points` (at least two) capacities, evenly spaced from `lowest`, the peak of live
// bytes, to twice that, in whole granules; fewer when granules are coarse. Between two of them the
// smallest is then sought to a thousandth of `lowest`, or to a granule if that is more.
ViableCapacity find_viable_capacity(Bytes lowest, Bytes granule, int points,
                                    const CapacityServes& serves);

}  // namespace headroom

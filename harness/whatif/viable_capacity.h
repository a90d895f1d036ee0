// Finds the smallest capacity that serves a training run, when one capacity says nothing about
// others.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

using CapacityServes = std::function<bool(Bytes capacity)>;

// The smallest capacity of a grid such that it and all larger ones serve all requests. More memory
// does not always help: holes are capacities below it that fail although a smaller one serves.
struct ViableCapacity {
  std::optional<Bytes> smallest;  // absent if even the grid's last fails
  std::vector<Bytes> holes;
  Bytes first = 0, last = 0;  // of the grid
  int points = 0;
};

// The grid has `points` (at least two) capacities, evenly spaced from `lowest`, the peak of live
// bytes, to twice that, in whole granules; fewer when granules are coarse.
ViableCapacity find_viable_capacity(Bytes lowest, Bytes granule, int points,
                                    const CapacityServes& serves);

}  // namespace headroom

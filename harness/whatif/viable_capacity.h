// In how little memory a training run is served, where trying one capacity says nothing of the
// others.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

using CapacityServes = std::function<bool(Bytes capacity)>;

// The smallest capacity of a grid from which on every one served all requests. More memory need
// not help: holes are those below it that failed although a smaller one served.
struct ViableCapacity {
  std::optional<Bytes> smallest;  // none: not even the grid's last
  std::vector<Bytes> holes;
  Bytes first = 0, last = 0;  // of the grid
  int points = 0;
};

// Grid: `points` (two at least) capacities, evenly from `lowest`, the peak of live bytes, to twice
// that, in whole granules; fewer where granules are coarse.
ViableCapacity find_viable_capacity(Bytes lowest, Bytes granule, int points,
                                    const CapacityServes& serves);

}  // namespace headroom

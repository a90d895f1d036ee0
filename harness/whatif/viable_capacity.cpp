#include "harness/whatif/viable_capacity.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr Bytes kFinest = 1000;  // parts of the lowest capacity

// Halves the gap between the smallest capacity that serves and the grid's one below it, which does
// not.
void refine(ViableCapacity& result, Bytes below, Bytes granule, const CapacityServes& serves) {
  const Bytes enough = std::max(granule, result.first / kFinest / granule * granule);
  while (*result.smallest - below > enough) {
    const Bytes middle = align_up(below + (*result.smallest - below) / 2, granule);
    if (serves(middle))
      result.smallest = middle;
    else
      below = middle;
  }
  result.resolution = *result.smallest - below;
}

}  // namespace

ViableCapacity find_viable_capacity(Bytes lowest, Bytes granule, int points,
                                    const CapacityServes& serves) {
  ViableCapacity result;
  const auto steps = static_cast<Bytes>(points - 1);
  bool served_below = false;
  Bytes failed = 0;  // the largest capacity of the grid below `smallest`
  for (Bytes i = 0; i <= steps; ++i) {
    const Bytes capacity = align_up(std::max<Bytes>(1, lowest + lowest / steps * i), granule);
    if (result.points > 0 && capacity == result.last) continue;
    if (result.points++ == 0) result.first = capacity;
    result.last = capacity;
    const bool served = serves(capacity);
    if (served && !result.smallest) result.smallest = capacity;
    if (!served && served_below) {
      result.holes.push_back(capacity);
      result.smallest.reset();
    }
    if (!served) failed = capacity;
    served_below = served_below || served;
  }
  if (result.smallest && failed > 0) refine(result, failed, granule, serves);
  return result;
}

}  // namespace headroom

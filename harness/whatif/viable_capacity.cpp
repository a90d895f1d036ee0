#include "harness/whatif/viable_capacity.h"

#include <algorithm>

namespace headroom {

ViableCapacity find_viable_capacity(Bytes lowest, Bytes granule, int points,
                                    const CapacityServes& serves) {
  ViableCapacity result;
  const auto steps = static_cast<Bytes>(points - 1);
  bool served_below = false;
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
    served_below = served_below || served;
  }
  return result;
}

}  // namespace headroom

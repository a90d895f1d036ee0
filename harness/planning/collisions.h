// The relative offsets at which two buffers collide.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/trace/buffers.h"

namespace headroom {

// A range of offset differences, both ends included.
struct Distances {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// Returns the values of (b's offset − a's offset) at which both buffers would use the same byte at
// the same time. The ranges are sorted, disjoint and not adjacent. Two rectangular buffers that
// live at once have one such range around 0. Buffers with gaps that keep some bytes can have
// several ranges, or one that excludes 0.
std::vector<Distances> collisions(const PlanBuffer& a, const PlanBuffer& b);

// Merges ranges that overlap or are adjacent.
void join(std::vector<Distances>& distances);

}  // namespace headroom

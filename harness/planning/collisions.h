// Where two buffers must not lie towards each other.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/trace/buffers.h"

namespace headroom {

// Distances, from `first` to `last`.
struct Distances {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// Of b's offset minus a's: those at which some byte would be used by both at once. In order,
// neither overlapping nor next to each other. Two rectangles that live at once have one such range
// around 0; gaps that keep some bytes can leave several, or one that spares 0.
std::vector<Distances> collisions(const PlanBuffer& a, const PlanBuffer& b);

// Joins what overlaps or lies next to each other.
void join(std::vector<Distances>& distances);

}  // namespace headroom

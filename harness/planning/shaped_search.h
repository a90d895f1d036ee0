// Offline planning by search for buffers with gaps that keep some of their bytes: these may lie
// under a neighbour at one time and above it at another, or reach into each other, so that no order
// from below is theirs and search.h does not apply.
//
// Method: of any two that collide as low as all can go, one is above the other or below it; both
// are tried, and what follows for all others from that (longest paths over differences of
// offsets).
#pragma once

#include <chrono>

#include "harness/planning/search.h"

namespace headroom {

// As search_plan, for any buffers. Where pairs that can collide are more than a million it gives up
// at once, and where what it would have to come back to takes over 512 MiB.
PlanSearch search_shaped_plan(const std::vector<PlanBuffer>& buffers, Bytes capacity,
                              std::chrono::steady_clock::time_point deadline);

}  // namespace headroom

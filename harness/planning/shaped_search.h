// Offline planning by search for buffers with gaps that keep some of their bytes. Such buffers may
// lie below a neighbour at one time and above it at another, or interlock, so no bottom-up order
// produces their plans and search.h does not apply.
//
// Method: with every buffer as low as it can go, pick two that collide. One of them must move above
// the other; both alternatives are tried, and the consequences for all other buffers are derived as
// longest paths over differences of offsets.
#pragma once

#include <chrono>

#include "harness/planning/search.h"

namespace headroom {

// Like search_plan, for any buffers. Gives up at once if more than a million pairs can collide, and
// later if the backtracking state takes over 512 MiB.
PlanSearch search_shaped_plan(const std::vector<PlanBuffer>& buffers, Bytes capacity,
                              std::chrono::steady_clock::time_point deadline);

}  // namespace headroom

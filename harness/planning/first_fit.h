// Offline planning by one pass over an order for buffers that have gaps or a fixed place, which
// float in the air for a planner that fills from below (greedy.h).
#pragma once

#include <cstdint>
#include <vector>

#include "harness/trace/buffers.h"

namespace headroom {

// Those with a fixed place lie there; of the others each, in the order given, as low as those
// placed before it allow. Buffers that are not in `order` are at 0. As many comparisons as pairs of
// buffers whose lives are near.
Offsets plan_by_first_fit(const std::vector<PlanBuffer>& buffers,
                          const std::vector<std::size_t>& order);

}  // namespace headroom

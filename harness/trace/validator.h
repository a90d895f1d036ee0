// An independent check of block placements that shares no code with any allocator or planner.
#pragma once

#include <string>
#include <vector>

#include "harness/trace/trace.h"

namespace headroom {

// Descriptions of what is wrong with the trace, at most `limit` of them. Empty when it is valid:
// live blocks are disjoint, inside one live segment, aligned and freed once, and reserved ≤
// capacity.
std::vector<std::string> violations(const Trace& trace, std::size_t limit = 10);

}  // namespace headroom

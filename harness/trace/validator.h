// The independent judge of every placement: shares no code with any allocator or planner.
#pragma once

#include <string>
#include <vector>

#include "harness/trace/trace.h"

namespace headroom {

// Everything wrong with the trace, in words, at most `limit` of them; empty when it is sound:
// live blocks disjoint, inside one live segment, aligned, freed once, reserved ≤ capacity.
std::vector<std::string> violations(const Trace& trace, std::size_t limit = 10);

}  // namespace headroom

// Constraints of a planning problem on the placement of a trace's blocks, which the trace itself
// does not hold.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/trace/buffers.h"
#include "harness/trace/trace.h"

namespace headroom {

struct Placement {
  std::uint32_t block = 0;  // id of the block in the trace
  PlanBuffer asked;         // the constraints; lifetime and size are in the trace
};

// The blocks of a trace in order of allocation, with their placement constraints. A block lives
// from the time_ns of its alloc to that of its free. Throws InputError when a constraint is
// invalid.
std::vector<PlanBuffer> buffers_of(const Trace& trace, const std::vector<Placement>& placements);

}  // namespace headroom

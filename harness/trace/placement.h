// What a planning problem asks of the places of a trace's blocks, which the trace itself cannot
// say.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/trace/buffers.h"
#include "harness/trace/trace.h"

namespace headroom {

struct Placement {
  std::uint32_t block = 0;  // its id in the trace
  PlanBuffer asked;         // of which lifetime and size stand in the trace
};

// The blocks of a trace in order of allocation, which live from the time_ns of their alloc to that
// of their free, and what is asked of their places. Throws InputError where what is asked is not
// sound.
std::vector<PlanBuffer> buffers_of(const Trace& trace, const std::vector<Placement>& placements);

}  // namespace headroom

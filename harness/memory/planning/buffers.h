// Buffers whose lifetimes are known before any of them is placed, and what makes a plan sound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/memory/requests.h"

namespace headroom {

// Lives in [lower, upper), in any unit of time.
struct PlanBuffer {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  Bytes size = 0;
  Bytes alignment = 1;
};

// One offset per buffer, in the buffers' order.
using Offsets = std::vector<Bytes>;

// The blocks of a list, time counted in requests; what is never freed lives to the end. Sizes are
// rounded up to `alignment`.
std::vector<PlanBuffer> buffers_of(const RequestList& list, Bytes alignment);

// Σ sizes of what is alive at once, at its highest: no plan needs less.
Bytes peak_live_bytes(const std::vector<PlanBuffer>& buffers);

// The end of the highest buffer.
Bytes makespan(const std::vector<PlanBuffer>& buffers, const Offsets& offsets);

// Everything wrong with a plan, in words, at most `limit` of them; empty when buffers that live at
// once are disjoint, aligned, and end within `capacity`. Shares no code with any planner.
std::vector<std::string> plan_violations(const std::vector<PlanBuffer>& buffers,
                                         const Offsets& offsets, Bytes capacity,
                                         std::size_t limit = 10);

}  // namespace headroom

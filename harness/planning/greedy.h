// Offline planning by one pass over an order: fast at any size, near the optimum on what training
// asks for, 1.1 to 1.3 times it on hard instances.
//
// Method: best fit as Sekiyama et al. describe it (2018, "Profile-guided memory optimization for
// deep neural networks"): of what is placed so far, the lowest span of time is filled next, with
// the first buffer of the order that lives within it; where there is none, it rises to its lower
// neighbour. No buffer is compared with those it shares time with, of which large steps have
// thousands. Where some have gaps or a fixed place it is first fit instead (first_fit.h).
#pragma once

#include "harness/trace/buffers.h"

namespace headroom {

enum class PlanOrder {
  start,     // earliest first
  end,       // latest end first
  lifetime,  // longest first
  area,      // size × lifetime
  size,      // largest first
  hint,      // lowest hint first, then those without; no higher than a plan given as hints
};

// O(n √n), on what was measured O(n log² n).
Offsets plan_greedily(const std::vector<PlanBuffer>& buffers, PlanOrder order);

// The lowest of all orders; the first that reaches least_bytes ends the search. Sound unless what
// is fixed is not (fixed_violations).
Offsets plan_greedily(const std::vector<PlanBuffer>& buffers);

}  // namespace headroom

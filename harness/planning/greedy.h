// Offline planning by one pass over an order: fast at any size, near the optimum for training
// steps, and 1.1 to 1.3 times the optimum on hard instances.
//
// Method: best fit as described by Sekiyama et al. (2018, "Profile-guided memory optimization for
// deep neural networks"). Of the skyline of placed buffers, the lowest span is filled next, with
// the first buffer of the order whose lifetime fits into it. If none fits, the span is raised to
// its lower neighbour. No buffer is compared with those alive at the same time, of which large
// steps have thousands. If any buffer has gaps or a fixed place, first fit is used instead
// (first_fit.h).
#pragma once

#include <chrono>

#include "harness/trace/buffers.h"

namespace headroom {

enum class PlanOrder {
  start,     // earliest first
  end,       // latest end first
  lifetime,  // longest first
  area,      // size × lifetime
  size,      // largest first
  hint,      // lowest hint first, then buffers without; no higher than a plan given as hints
};

// Plans in one order. Worst case O(n √n); O(n log² n) on the measured inputs.
Offsets plan_greedily(const std::vector<PlanBuffer>& buffers, PlanOrder order);

// Returns the lowest plan of all orders, and stops at the first that reaches least_bytes. The plan
// is valid unless the fixed places conflict (fixed_violations).
Offsets plan_greedily(const std::vector<PlanBuffer>& buffers);

// Returns the lowest plan found by `deadline`, or `plan` if none is lower: one pass after another,
// each over an order that differs a little, at random, from the one whose plan is the lowest so
// far. Stops at least_bytes. Returns `plan` if any buffer has gaps or a fixed place.
Offsets improve_greedily(const std::vector<PlanBuffer>& buffers, Offsets plan,
                         std::chrono::steady_clock::time_point deadline);

}  // namespace headroom

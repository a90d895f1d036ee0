// Lists the blocks of a trace that outlive the step that allocated them, by role and op. The result
// is exact and locates a leak that the leak detector found.
#pragma once

#include <string>
#include <vector>

#include "harness/stats/leak_detector.h"
#include "harness/trace/trace.h"

namespace headroom {

// Blocks of one role that were allocated by one op.
struct RetainedSite {
  Role role = Role::activation;
  std::string op;  // its name; "" for blocks allocated outside ops
  // Number of blocks allocated after warm-up that were still live `steps_later` steps after their
  // step.
  std::size_t blocks = 0;
  Bytes bytes = 0;
  double bytes_per_step = 0;  // bytes divided by the number of steps considered
  Bytes most_held = 0;        // peak of what the site holds after a step, whenever allocated
  // Trend of what the site holds after each step: a ring of a few steps' blocks retains memory but
  // does not grow.
  LeakFinding growth;
};

// Sites that retain blocks, fastest growth first. The first `warmup_steps` ≥ 0 steps are left out;
// `steps_later` ≥ 1. Throws Error for other values.
std::vector<RetainedSite> find_retained(const Trace& trace, int warmup_steps, int steps_later = 1);

// Trend of the live requested bytes of all sites, after each step from the last one of the warm-up
// on.
LeakFinding growth_of_live_bytes(const Trace& trace, int warmup_steps);

// The same history cut into `windows` ≥ 1 parts with equal numbers of events, numbered as steps
// from 1. For histories without step numbers.
Trace cut_into_windows(Trace trace, int windows);

}  // namespace headroom

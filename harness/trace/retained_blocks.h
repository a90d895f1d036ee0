// Which blocks of a trace outlive the step that took them, by role and op: exact, nothing is
// estimated. Where a leak comes from, when the leak detector has seen one.
#pragma once

#include <string>
#include <vector>

#include "harness/stats/leak_detector.h"
#include "harness/trace/trace.h"

namespace headroom {

// Blocks of one role that one op asked for.
struct RetainedSite {
  Role role = Role::activation;
  std::string op;  // its name; "" for what no op asked for
  // Taken in a step after warm-up that has `steps_later` steps after it, and still live then.
  std::size_t blocks = 0;
  Bytes bytes = 0;
  double bytes_per_step = 0;  // bytes / steps that could have left some
  Bytes most_held = 0;        // by the site after a step, whenever taken
  // What the site holds after each step: a ring of a few steps' blocks retains and does not grow.
  LeakFinding growth;
};

// Sites that retain anything, fastest growth first. `warmup_steps` ≥ 0 are left out, `steps_later`
// ≥ 1. Throws Error for other values.
std::vector<RetainedSite> find_retained(const Trace& trace, int warmup_steps, int steps_later = 1);

// Bytes that live blocks of all sites asked for, after each step from the last of the warm-up on.
LeakFinding growth_of_live_bytes(const Trace& trace, int warmup_steps);

// The same history in `windows` ≥ 1 pieces of as many events each, numbered as steps from 1: for
// histories that do not tell steps apart.
Trace cut_into_windows(Trace trace, int windows);

}  // namespace headroom

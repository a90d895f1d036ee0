// Does a training run fit a card, in how large a batch, and what does each allocator make of it?
// Simulated: requests are counted and served on a virtual capacity, nothing is computed or timed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/plan/cell.h"
#include "harness/training/step_counts.h"
#include "harness/whatif/largest_batch.h"
#include "harness/whatif/replay.h"

namespace headroom {

struct AllocatorFit {
  Spec allocator;
  std::string refused;    // why it cannot be built on this device; or ""
  ReplayOutcome outcome;  // of the batch that was asked for
  LargestBatch largest;
};

struct Fit {
  Cell cell;  // its allocator says nothing
  ReplayDevice device;
  int steps = 0;
  std::int64_t batch = 0;  // that was asked for
  std::int64_t parameters = 0;
  std::size_t requests = 0;   // allocations and frees of all steps
  Bytes peak_live_bytes = 0;  // no allocator needs less
  std::array<Bytes, kRoleCount> live_at_peak{};
  StepCounts counts;
  std::string not_engaged;  // why a pass of the cell does nothing here; or ""
  // No allocator serves a larger one; 0: none at all. Absent where the workload has no free batch.
  std::optional<std::int64_t> last_batch_by_live_bytes;
  std::vector<AllocatorFit> allocators;
};

// cell.device must compute nothing; steps = cell.warmup_steps + cell.measured_steps. No batch is
// looked for where the workload has no parameter `batch`. Throws InputError.
Fit find_fit(const Cell& cell, const std::vector<Spec>& allocators);

}  // namespace headroom

// Determines whether the training of a cell fits a card, up to which batch, and under which
// allocators. Simulated: requests are counted and served on a virtual capacity, nothing is computed
// or timed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/plan/cell.h"
#include "harness/training/step_counts.h"
#include "harness/whatif/largest_batch.h"
#include "harness/whatif/replay.h"

namespace headroom {

struct AllocatorFit {
  Spec allocator;
  std::string refused;    // why the allocator cannot be built on this device, or ""
  ReplayOutcome outcome;  // of the requested batch
  LargestBatch largest;
  bool serves() const { return refused.empty() && !outcome.failure; }  // the requested batch
};

struct Fit {
  Cell cell;  // its allocator is irrelevant
  ReplayDevice device;
  int steps = 0;
  std::int64_t batch = 0;  // the requested batch
  std::int64_t parameters = 0;
  std::size_t requests = 0;   // allocations and frees of all steps
  Bytes peak_live_bytes = 0;  // no allocator needs less
  std::array<Bytes, kRoleCount> live_at_peak{};
  StepCounts counts;
  Reason not_engaged;  // why a pass of the cell does nothing here
  // No allocator serves a larger batch; 0: none fits. Absent when the workload has no free batch.
  std::optional<std::int64_t> last_batch_by_live_bytes;
  std::vector<AllocatorFit> allocators;
};

// cell.device must compute nothing; steps = cell.warmup_steps + cell.measured_steps. The largest
// batch is only searched for when the workload has a parameter `batch`. Throws InputError.
Fit find_fit(const Cell& cell, const std::vector<Spec>& allocators);

}  // namespace headroom

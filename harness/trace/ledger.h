// Reads a Trace and tells where the bytes were: the metric ladder's allocator rungs at each
// moment, per phase, and by role at the peak.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/trace/trace.h"

namespace headroom {

// One rung at the moments a claim may mean. A moment that never came (the run ended before it)
// is 0. What a step finds when it starts counts towards the peak of its part.
struct Moments {
  Bytes initial = 0;       // when the first step starts
  Bytes after_step_1 = 0;  // when it has ended
  Bytes warmup_peak = 0;   // within steps 1 … W
  Bytes steady_peak = 0;   // within the steps after W
  Bytes overall_peak = 0;

  bool operator==(const Moments&) const = default;
};

struct RungPeaks {
  Bytes requested = 0;
  Bytes allocated = 0;
  Bytes reserved = 0;
};

struct Ledger {
  Moments requested;
  Moments allocated;
  Moments reserved;
  // Steps after warm-up, and what happens before the first step (initialize). A phase without
  // events stays 0.
  std::array<RungPeaks, kPhaseCount> phase_peaks{};
  std::array<Bytes, kRoleCount> requested_at_peak{};  // split of requested.overall_peak
  // At the moment allocated was first highest:
  double internal_fragmentation = 0;  // Σ(block − requested) / Σ block
  double external_fragmentation = 0;  // 1 − largest_free / total_free; 0 when nothing is free
  double utilisation = 0;             // peak allocated / peak reserved
  // Per step, index 0 = step 1.
  std::vector<std::uint64_t> device_allocations;
  std::vector<std::uint64_t> device_frees;
  std::vector<Bytes> allocated_after_step;  // what a step leaves behind: weights, and any leak
};

// Throws Error when an invariant fails (requested + internal + free = reserved at every event,
// where the unusable end of a segment's last granule counts as reserved only; blocks disjoint and
// inside a segment; steps in order). `warmup_steps` = W. Events after the last step (giving
// everything back) must not be recorded: they would count as the last step's frees.
Ledger make_ledger(const Trace& trace, int warmup_steps);

}  // namespace headroom

// Reads a Trace and tells where the bytes were: the metric ladder's allocator rungs at each
// moment, per phase, and by role at the peak.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/memory/trace.h"

namespace headroom {

// One rung at the moments a claim may mean.
struct Moments {
  Bytes initial = 0;       // when the first step starts
  Bytes after_step_1 = 0;  // when it has ended
  Bytes warmup_peak = 0;   // within steps 1 … W
  Bytes steady_peak = 0;   // within the steps after W
  Bytes overall_peak = 0;
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
  std::array<RungPeaks, kPhaseCount> phase_peaks{};   // steps after warm-up
  std::array<Bytes, kRoleCount> requested_at_peak{};  // split of requested.overall_peak
  // At the moment allocated was highest:
  double internal_fragmentation = 0;  // Σ(block − requested) / Σ block
  double external_fragmentation = 0;  // 1 − largest_free / total_free; 0 when nothing is free
  double utilisation = 0;             // peak allocated / peak reserved
  // Per step, index 0 = step 1.
  std::vector<std::uint64_t> device_allocations;
  std::vector<std::uint64_t> device_frees;
};

// Throws Error when an invariant fails (requested + internal + free = reserved at every event,
// blocks disjoint and inside a segment). `warmup_steps` = W.
Ledger make_ledger(const Trace& trace, int warmup_steps);

}  // namespace headroom

// Computes the memory figures of a Trace: requested, allocated and reserved bytes at each moment
// and per phase, and the split by role at the peak.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/trace/trace.h"

namespace headroom {

// One kind of bytes at the moments that a claim may refer to. A moment that was not reached (the
// run ended before it) is 0. The level at the start of a step counts towards the peaks of the part
// it belongs to.
struct Moments {
  Bytes initial = 0;       // when the first step starts
  Bytes after_step_1 = 0;  // when step 1 has ended
  Bytes warmup_peak = 0;   // within steps 1 … W
  Bytes steady_peak = 0;   // within the steps after W
  Bytes overall_peak = 0;

  bool operator==(const Moments&) const = default;
};

struct PhasePeaks {
  Bytes requested = 0;
  Bytes allocated = 0;
  Bytes reserved = 0;
};

struct Ledger {
  Moments requested;
  Moments allocated;
  Moments reserved;
  // Peaks of the steps after warm-up; for phase initialize, of the time before the first step. A
  // phase without events stays 0.
  std::array<PhasePeaks, kPhaseCount> phase_peaks{};
  std::array<Bytes, kRoleCount> requested_at_peak{};  // split of requested.overall_peak
  // Measured when `allocated` first reached its peak:
  double internal_fragmentation = 0;  // Σ(block − requested) / Σ block
  double external_fragmentation = 0;  // 1 − largest_free / total_free; 0 when nothing is free
  double utilisation = 0;             // peak allocated / peak reserved
  // Per step, index 0 = step 1.
  std::vector<std::uint64_t> device_allocations;
  std::vector<std::uint64_t> device_frees;
  std::vector<Bytes> allocated_after_step;  // what a step leaves allocated: weights, and any leak
};

// Throws Error when an invariant fails (requested + internal + free = reserved at every event,
// where the unusable end of a segment's last granule counts as reserved only; blocks disjoint and
// inside a segment; steps in order). `warmup_steps` is W. Events of the teardown after the last
// step must not be recorded: they would count as frees of the last step.
Ledger make_ledger(const Trace& trace, int warmup_steps);

}  // namespace headroom

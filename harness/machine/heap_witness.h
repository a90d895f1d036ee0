// Counts what goes through the C heap of this process, and so what libraries (oneDNN's GEMM
// driver, OpenMP) allocate for themselves beside the strategy allocator. Stands in front of
// glibc's malloc family for the whole program: one relaxed atomic update or two per call.
// Not seen: memory that a library maps itself. A malloc preloaded from outside is bypassed.
#pragma once

#include <cstdint>

#include "harness/base/units.h"

namespace headroom {

struct HeapCounters {
  Bytes live_bytes = 0;           // usable bytes of all live heap blocks
  Bytes peak_bytes = 0;           // highest since start or the last restart_heap_peak()
  std::uint64_t allocations = 0;  // successful calls since start
};

// False under AddressSanitizer and ThreadSanitizer, which bring their own malloc, and where the C
// library is not glibc; all counters are 0 then.
bool heap_witness_available();
HeapCounters heap_counters();
// The peak starts again from what is live now.
void restart_heap_peak();

}  // namespace headroom

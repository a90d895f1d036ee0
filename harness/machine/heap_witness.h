// Counts the C heap allocations of this process, which include what libraries (oneDNN's GEMM
// driver, OpenMP) allocate outside the strategy allocator. It replaces glibc's malloc family for
// the whole program, at a cost of one or two relaxed atomic updates per call. It does not see
// memory that a library maps itself, and a malloc preloaded from outside bypasses it.
#pragma once

#include <cstdint>

#include "harness/base/units.h"

namespace headroom {

struct HeapCounters {
  Bytes live_bytes = 0;           // usable bytes of all live heap blocks
  Bytes peak_bytes = 0;           // highest since start or the last restart_heap_peak()
  std::uint64_t allocations = 0;  // successful calls since start
};

// False under AddressSanitizer and ThreadSanitizer, which bring their own malloc, and with any C
// library but glibc. All counters are then 0.
bool heap_witness_available();
HeapCounters heap_counters();
// Resets the peak to the bytes live now.
void restart_heap_peak();

}  // namespace headroom

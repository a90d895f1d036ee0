// Memory figures of a process from sources other than the allocator: the operating system, the GPU
// driver and the malloc witness.
#pragma once

#include <cstdint>

#include "harness/trace/ledger.h"

namespace headroom {

// Memory that the operating system charges the process.
struct ProcessMemory {
  Moments resident;    // sampled at step boundaries; peaks from VmHWM if the kernel has it
  Bytes baseline = 0;  // before device memory was created
};

// GPU memory in use as the driver reports it, including the context and libraries. It is sampled at
// step boundaries, so a peak within a step is missed if the strategy returns memory before the step
// ends. All figures are 0 on devices without a driver.
struct DriverMemory {
  Moments used;        // by all processes
  Bytes baseline = 0;  // used before this process had a context; 0 without NVML
  Moments process;     // by this process, from NVML; 0 where unknown, as in containers
};

// Heap memory that libraries allocated outside the strategy allocator, from the malloc witness.
struct Witness {
  bool available = false;     // false under sanitizers, which bring their own malloc
  Bytes heap_live_bytes = 0;  // at the start of the first steady step
  Bytes heap_peak_bytes = 0;  // highest during steady steps
  std::uint64_t heap_allocations_per_step = 0;
};

}  // namespace headroom

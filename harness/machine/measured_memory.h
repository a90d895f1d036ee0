// Memory figures of a run that do not come from the allocator: the operating system's, those of the
// GPU's driver, and the malloc witness's.
#pragma once

#include <cstdint>

#include "harness/trace/ledger.h"

namespace headroom {

// What the operating system charges the process.
struct ProcessMemory {
  Moments resident;    // sampled at step boundaries, peaks by VmHWM where the kernel has it
  Bytes baseline = 0;  // before the device memory was made
};

// GPU memory in use as the driver reports it, context and libraries included. It is polled at step
// boundaries, so a peak within a step is missed where the strategy gives memory back before the
// step ends. All 0 on devices without a driver.
struct DriverMemory {
  Moments used;        // by all processes
  Bytes baseline = 0;  // used before this process had a context; 0: there was no NVML to ask
  Moments process;     // by this process, as NVML names it; 0 where it does not, as in containers
};

// What libraries allocated beside the strategy allocator, from the malloc witness.
struct Witness {
  bool available = false;     // false under sanitizers, which bring their own malloc
  Bytes heap_live_bytes = 0;  // at the start of the first steady step
  Bytes heap_peak_bytes = 0;  // highest during steady steps
  std::uint64_t heap_allocations_per_step = 0;
};

}  // namespace headroom

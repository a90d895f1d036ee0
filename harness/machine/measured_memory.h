// What others than the allocator say of a run's memory: the operating system, the GPU's driver, and
// the malloc witness.
#pragma once

#include <cstdint>

#include "harness/trace/ledger.h"

namespace headroom {

// What the operating system charges the process.
struct ProcessMemory {
  Moments resident;    // sampled at step boundaries, peaks by VmHWM where the kernel has it
  Bytes baseline = 0;  // before the device memory was made
};

// What the driver says is gone from the GPU, context and libraries included. Polled at step
// boundaries, where the peaks of a strategy that gives memory back within a step are missed. All 0
// on devices without a driver.
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

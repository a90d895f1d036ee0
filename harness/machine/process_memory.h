// Memory that the kernel charges this process: resident bytes, their high-water mark, and page
// faults so far; and what the machine has left. Source: proc(5), getrusage(2).
#pragma once

#include <cstdint>

#include "harness/base/units.h"

namespace headroom {

struct Residency {
  Bytes resident = 0;         // VmRSS
  Bytes high_water_mark = 0;  // VmHWM since start or the last reset
  Bytes writable = 0;         // VmData, of which not all need be resident
};
Residency read_residency();

// Resets the high-water mark to the present size. Returns false if the kernel does not allow it.
bool reset_high_water_mark();

std::uint64_t minor_faults();

// Bytes that programs could still take on this machine; 0 if the kernel does not say.
Bytes available_memory();

}  // namespace headroom

// What the kernel charges this process: resident bytes now and their high-water mark, and the
// page faults so far. Source: proc(5), getrusage(2).
#pragma once

#include <cstdint>

#include "harness/base/units.h"

namespace headroom {

struct Residency {
  Bytes resident = 0;         // VmRSS
  Bytes high_water_mark = 0;  // VmHWM since start or the last reset
};
Residency read_residency();

// Starts a new high-water mark at the present size. False where the kernel does not allow it.
bool reset_high_water_mark();

std::uint64_t minor_faults();

}  // namespace headroom

// Values that a step moves out of device memory for a while: an op of kind copy_out makes a host
// copy of a value, copy_in restores the value. For code that counts bytes or allocates values.
#pragma once

#include <vector>

#include "harness/program/program.h"

namespace headroom {

bool is_transfer(const Op& op);  // copy_out or copy_in

// For each value, whether an op of kind copy_out makes it, so that none of its bytes are on the
// device.
std::vector<bool> kept_on_host(const Program& program);

// Offloading by one execution of a lowered Program: the bytes copied out, and the peak kept on the
// host.
struct Offloaded {
  Bytes moved = 0;
  Bytes peak = 0;
};
Offloaded count_offloaded(const Program& lowered);

}  // namespace headroom

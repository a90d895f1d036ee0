// Values that a step keeps outside the device's memory for a while: an op of kind copy_out makes
// one of a value, copy_in makes the value again. For whoever counts bytes or gives values their
// memory.
#pragma once

#include <vector>

#include "harness/program/program.h"

namespace headroom {

bool is_transfer(const Op& op);  // copy_out or copy_in

// By value: what ops of kind copy_out make. No byte of it is on the device.
std::vector<bool> kept_on_host(const Program& program);

// Of a lowered Program: what one execution copies out, and the most of it that is kept at a time.
struct Offloaded {
  Bytes moved = 0;
  Bytes peak = 0;
};
Offloaded count_offloaded(const Program& lowered);

}  // namespace headroom

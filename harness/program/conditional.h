// Ops that a step may skip depending on a value computed on the device: whether gradients
// overflowed is known only there, and the host does not wait for it.
#pragma once

#include "harness/program/program.h"

namespace headroom {

// Makes the op do nothing when `flag`, a single f32, is not 0. The flag becomes an additional last
// operand that the op's kind does not know. The op must only change values in place.
void do_unless(Op& op, ValueId flag);
bool is_conditional(const Op& op);
// The op without its condition.
Op unconditional(Op op);

}  // namespace headroom

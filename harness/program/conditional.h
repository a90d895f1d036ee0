// Ops that a step may leave out, by what it computed on the way: whether gradients overflowed is
// known on the device only, and nobody waits for it.
#pragma once

#include "harness/program/program.h"

namespace headroom {

// Makes the op do nothing where `flag`, a single f32, is not 0. It reads the flag as a last operand
// that its kind does not know of. The op must only change things in place.
void do_unless(Op& op, ValueId flag);
bool is_conditional(const Op& op);
// The op without its condition.
Op unconditional(Op op);

}  // namespace headroom

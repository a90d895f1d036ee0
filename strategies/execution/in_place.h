// Writes results in place of operands that are not read again.
#pragma once

#include "harness/program/program.h"

namespace headroom::execution {

// If the kind of op allows it (in_place_choices), the output takes over the memory of an input that
// the op is the last to read, provided both have the same layout. Weights, results and values that
// the backward pass still reads are not overwritten. Needs a lowered Program in its final order.
Program reuse_operands(Program lowered);

}  // namespace headroom::execution

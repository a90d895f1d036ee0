// Results written where an operand lay that nobody reads again.
#pragma once

#include "harness/program/program.h"

namespace headroom::execution {

// Where a kind can (in_place_choices), the output takes over the memory of an input whose last
// reader the op is, if both lie in memory in the same way. Weights, results and what the backward
// pass still reads stay. Needs a lowered Program in its final order.
Program reuse_operands(Program lowered);

}  // namespace headroom::execution

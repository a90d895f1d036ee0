// Reorders ops such that each still reads the same values, so every number stays the same.
#pragma once

#include "harness/program/program.h"

namespace headroom::execution {

// Which of the ready ops comes next. Ties go to the first in the built order.
enum class Order {
  depth_first,    // the op that became ready last: follows a branch to its end
  breadth_first,  // the op that became ready first, as in a queue of ready ops
  memory,         // the op that leaves least live memory: bytes made minus bytes freed
};

// An op waits for the makers of its operands and, before it changes a value, for all readers of the
// old value. Ops that recompute, or copy back offloaded values, also wait for the last other op
// before them: otherwise they would be ready at once, and values dropped by checkpointing would be
// back before the backward pass. Needs a lowered Program.
Program reorder(Program lowered, Order order);

}  // namespace headroom::execution

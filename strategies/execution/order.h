// Other orders of the same ops: each op still sees what it saw, so every number stays the same.
#pragma once

#include "harness/program/program.h"

namespace headroom::execution {

// Which of the ops comes next that have all they wait for. Of those that are alike: the first of
// the built order.
enum class Order {
  depth_first,    // what became ready last: a branch is followed to its end
  breadth_first,  // what became ready first, as a queue of ready ops runs them
  memory,         // what leaves the least memory taken: bytes it makes less bytes it frees
};

// An op waits for what it reads and, before it changes a value, for all who read it as it was. Ops
// that are computed again, and those that copy back what was offloaded, wait for the op before them
// too: they would be ready at once, and what checkpointing took away would be back before the
// backward pass. Needs a lowered Program.
Program reorder(Program lowered, Order order);

}  // namespace headroom::execution

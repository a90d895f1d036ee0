// Plans all transient values of a Program in one block: offsets are fixed before the first step,
// from which values are live at the same time. Needs a lowered Program in its final order.
#pragma once

#include <vector>

#include "harness/program/program.h"
#include "harness/trace/buffers.h"

namespace headroom {

struct PoolPlan {
  Bytes device = 0;      // bytes of the block
  Bytes host = 0;        // bytes of a second block, for offloaded values
  Offsets offsets = {};  // by value, within its block; 0 for persistent values
};

// Plans with plan_greedily, which gives the same plan on every device, and aligns as blocks are
// aligned.
PoolPlan plan_pool(const Program& lowered);

// The input of the planner, for code that checks plans: one buffer per block that an Executor would
// allocate, on the device or for offloaded values, with ops as units of time. Values that share a
// buffer (in_place.h) have the same index.
struct PoolBuffers {
  std::vector<PlanBuffer> device, host;
  struct Place {
    bool on_host = false;
    std::size_t buffer = kNowhere;
  };
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  std::vector<Place> places;  // by value
};
PoolBuffers pool_buffers(const Program& lowered);

}  // namespace headroom

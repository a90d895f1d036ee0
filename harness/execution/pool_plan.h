// Where everything that a Program makes on the way lies in one block: fixed before it first runs,
// by who lives at the same time as whom. Needs a lowered Program in its final order.
#pragma once

#include <vector>

#include "harness/program/program.h"
#include "harness/trace/buffers.h"

namespace headroom {

struct PoolPlan {
  Bytes device = 0;      // bytes of the block
  Bytes host = 0;        // of another, for what is offloaded
  Offsets offsets = {};  // by value, into the block it lies in; 0 of what lives across steps
};

// By plan_greedily, so that it is the same on every device; aligned as blocks are.
PoolPlan plan_pool(const Program& lowered);

// What is planned, for whoever checks a plan: a buffer for each block an Executor would take, on
// the device or of what is offloaded, in ops as units of time. Values that lie in one buffer
// (in_place.h) name the same.
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

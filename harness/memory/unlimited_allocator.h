// Serves every request without memory or bookkeeping. Used to see what a program requests
// regardless of the strategy, and to time the layers in front of a strategy.
#pragma once

#include "harness/memory/allocator.h"

namespace headroom {

class UnlimitedAllocator final : public Allocator {
 public:
  Block allocate(Bytes bytes, const AllocationHint&) override {
    return {.address = next_ += bytes, .requested = bytes, .size = bytes};
  }
  void deallocate(const Block&) override {}
  AllocatorStatistics statistics() const override { return {}; }

 private:
  Address next_ = 0;
};

}  // namespace headroom

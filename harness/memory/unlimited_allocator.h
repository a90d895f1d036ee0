// Serves every request from nothing and keeps no books: for what a program asks for, whoever
// serves it, and for the price of what stands in front of a strategy.
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

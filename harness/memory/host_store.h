// Host memory for offloaded values. A freed buffer is kept for the next request of the same size,
// as is usual for pinned buffers, which are slow to allocate. These bytes are not device memory and
// appear in no trace; this class counts them itself.
#pragma once

#include <map>
#include <vector>

#include "harness/memory/allocator.h"

namespace headroom {

class HostStore final : public Allocator {
 public:
  explicit HostStore(DeviceMemory& memory) : memory_(memory) {}
  ~HostStore() override;

  // On OutOfMemory all idle buffers have been released.
  Block allocate(Bytes bytes, const AllocationHint& hint) override;
  void deallocate(const Block& block) override;
  AllocatorStatistics statistics() const override { return statistics_; }
  void trim() override;

  Bytes peak() const { return peak_; }  // bytes of live blocks
  Bytes reserved_peak() const { return reserved_peak_; }

 private:
  Segment take(Bytes bytes);

  DeviceMemory& memory_;
  AllocatorStatistics statistics_;
  std::map<Bytes, std::vector<Segment>> idle_;  // by size
  std::map<Address, Segment> live_;
  Bytes peak_ = 0;
  Bytes reserved_peak_ = 0;
};

}  // namespace headroom

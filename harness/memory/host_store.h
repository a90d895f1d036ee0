// Where offloaded values wait: memory of the host beside the device's. A buffer that is given back
// waits for the next of its size, as pinned buffers are kept, which are slow to take. Its bytes are
// no bytes of the device and stand in no trace; its own books tell them.
#pragma once

#include <map>
#include <vector>

#include "harness/memory/allocator.h"

namespace headroom {

class HostStore final : public Allocator {
 public:
  explicit HostStore(DeviceMemory& memory) : memory_(memory) {}
  ~HostStore() override;

  // On OutOfMemory nothing idle is held any more.
  Block allocate(Bytes bytes, const AllocationHint& hint) override;
  void deallocate(const Block& block) override;
  AllocatorStatistics statistics() const override { return statistics_; }
  void trim() override;

  Bytes peak() const { return peak_; }  // of live blocks
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

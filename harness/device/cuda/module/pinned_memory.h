// Page-locked host memory that the GPU's copy engines access directly; offloaded values and staged
// batches wait in it. Locking pages is slow, so owners keep them.
#pragma once

#include "harness/device/device_memory.h"

namespace headroom::cuda {

class PinnedMemory final : public DeviceMemory {
 public:
  // The capacity is all of the machine's memory.
  PinnedMemory();

  bool is_host_accessible() const override { return true; }

 protected:
  // Throws DeviceError when the system cannot lock more pages.
  std::byte* commit(Bytes bytes) override;
  void release(std::byte* data, Bytes bytes) override;
};

}  // namespace headroom::cuda

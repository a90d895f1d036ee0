// Memory of the host that the GPU's copy engines read and write by themselves: where offloaded
// values and staged batches wait. Locked pages are not paged out, and slow to take; who asks for
// them keeps them.
#pragma once

#include "harness/device/device_memory.h"

namespace headroom::cuda {

class PinnedMemory final : public DeviceMemory {
 public:
  // As much as the machine has.
  PinnedMemory();

  bool is_host_accessible() const override { return true; }

 protected:
  // Throws DeviceError where the system locks no more pages.
  std::byte* commit(Bytes bytes) override;
  void release(std::byte* data, Bytes bytes) override;
};

}  // namespace headroom::cuda

// The GPU's memory as allocator strategies see it: plain cudaMalloc, never managed memory, which
// would move pages behind the strategies' back.
#pragma once

#include "harness/device/device_memory.h"

namespace headroom::cuda {

// Left to the driver and the libraries when no capacity is asked for: they load kernels while
// training runs.
inline constexpr Bytes kReserve = 512 * kMiB;

class CudaMemory final : public DeviceMemory {
 public:
  // `capacity` 0: what is free less kReserve. Throws InputError when more is asked for than is
  // free. Needs the context to exist, so that its own memory no longer counts as free.
  explicit CudaMemory(Bytes capacity);

 protected:
  std::byte* commit(Bytes bytes) override;
  void release(std::byte* data, Bytes bytes) override;
};

}  // namespace headroom::cuda

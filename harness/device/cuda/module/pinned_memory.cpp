#include "harness/device/cuda/module/pinned_memory.h"

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/device/cuda/module/check.h"
#include "harness/device/host/host_memory.h"

namespace headroom::cuda {

PinnedMemory::PinnedMemory() : DeviceMemory(physical_memory(), kHostGranule) {}

std::byte* PinnedMemory::commit(Bytes bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaHostAlloc(&data, bytes, cudaHostAllocDefault);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw DeviceError(
        fmt::format("the system refused to lock {} more of the host's memory, of which {} are "
                    "locked; offload less (share=) or stage fewer batches",
                    format_bytes(bytes), format_bytes(reserved())));
  }
  require_success(status, "locked memory of the host");
  return static_cast<std::byte*>(data);
}

// A copy may still read the memory. An error here comes from an earlier kernel; the next
// synchronisation reports it.
void PinnedMemory::release(std::byte* data, Bytes) {
  cudaDeviceSynchronize();
  cudaFreeHost(data);
}

}  // namespace headroom::cuda

#include "harness/device/cuda/module/memory.h"

#include <cudaTypedefs.h>
#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/device/cuda/module/check.h"

namespace headroom::cuda {
namespace {

// The size of the driver's physical pages, 2 MiB on the GPUs of today. Asked through the runtime:
// linking the driver's library would keep the module from loading where there is no driver.
Bytes page_size() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  require_success(cudaGetDriverEntryPointByVersion("cuMemGetAllocationGranularity", &function,
                                                   10020, cudaEnableDefault, &found),
                  "to find cuMemGetAllocationGranularity");
  if (found != cudaDriverEntryPointSuccess || function == nullptr)
    throw DeviceError("the NVIDIA driver has no cuMemGetAllocationGranularity");
  const auto granularity = reinterpret_cast<PFN_cuMemGetAllocationGranularity_v10020>(function);
  CUmemAllocationProp_v1 pinned{};
  pinned.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  pinned.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  require_success(cudaGetDevice(&pinned.location.id), "to name the GPU");
  std::size_t bytes = 0;
  if (granularity(&bytes, &pinned, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS || bytes == 0)
    throw DeviceError("the NVIDIA driver does not tell its page size");
  return bytes;
}

Bytes free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  require_success(cudaMemGetInfo(&free, &total), "to tell how much memory is free");
  return free;
}

Bytes capacity_or_default(Bytes asked) {
  const Bytes free = free_bytes();
  if (asked > free)
    throw NotSupported(
        fmt::format("cuda(capacity={}): the GPU has {} free; ask for less, or leave "
                    "the capacity out to take that less {}",
                    asked, format_bytes(free), format_bytes(kReserve)));
  if (asked != 0) return asked;
  if (free <= kReserve)
    throw DeviceError(
        fmt::format("the GPU has {} free, of which {} are left to the driver and the "
                    "libraries; stop what else uses it, or name a capacity",
                    format_bytes(free), format_bytes(kReserve)));
  return free - kReserve;
}

Bytes at_least_a_page(Bytes capacity, Bytes page) {
  if (capacity < page)
    throw InputError(
        fmt::format("cuda(capacity={}): the GPU hands out memory by {}; ask for at "
                    "least that",
                    capacity, format_bytes(page)));
  return capacity;
}

}  // namespace

CudaMemory::CudaMemory(Bytes capacity)
    : DeviceMemory(at_least_a_page(capacity_or_default(capacity), page_size()), page_size()) {}

std::byte* CudaMemory::commit(Bytes bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw DeviceError(fmt::format(
        "cudaMalloc refused {} although {} of the capacity of {} are "
        "left: somebody else uses the GPU; name a smaller capacity",
        format_bytes(bytes), format_bytes(available()), format_bytes(this->capacity())));
  }
  require_success(status, "memory");
  return static_cast<std::byte*>(data);
}

// An error here is one of an earlier kernel; whoever synchronises next reports it.
void CudaMemory::release(std::byte* data, Bytes) { cudaFree(data); }

}  // namespace headroom::cuda

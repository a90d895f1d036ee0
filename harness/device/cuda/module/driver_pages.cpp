#include "harness/device/cuda/module/driver_pages.h"

#include <fmt/format.h>

#include <utility>

#include "harness/base/error.h"
#include "harness/device/cuda/module/check.h"

namespace headroom::cuda {
namespace {

constexpr unsigned kSinceCuda10 = 10020;  // 10.2, as the driver counts versions

template <typename Function>
Function driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  cuda::require_success(
      cudaGetDriverEntryPointByVersion(name, &function, kSinceCuda10, cudaEnableDefault, &found),
      fmt::format("to find {}", name));
  if (found != cudaDriverEntryPointSuccess || function == nullptr)
    throw DeviceError(
        fmt::format("the NVIDIA driver has no {}; needs one for CUDA 10.2 or newer "
                    "(nvidia-smi shows which it is)",
                    name));
  return reinterpret_cast<Function>(function);
}

CUdeviceptr address_of(std::byte* data) { return reinterpret_cast<CUdeviceptr>(data); }

int current_gpu() {
  int gpu = 0;
  cuda::require_success(cudaGetDevice(&gpu), "to name the GPU");
  return gpu;
}

}  // namespace

DriverPages::DriverPages(std::function<void()> wait)
    : wait_(std::move(wait)),
      device_attribute_(driver_function<PFN_cuDeviceGetAttribute_v2000>("cuDeviceGetAttribute")),
      error_name_(driver_function<PFN_cuGetErrorName_v6000>("cuGetErrorName")),
      granularity_(driver_function<PFN_cuMemGetAllocationGranularity_v10020>(
          "cuMemGetAllocationGranularity")),
      reserve_(driver_function<PFN_cuMemAddressReserve_v10020>("cuMemAddressReserve")),
      release_(driver_function<PFN_cuMemAddressFree_v10020>("cuMemAddressFree")),
      create_(driver_function<PFN_cuMemCreate_v10020>("cuMemCreate")),
      destroy_(driver_function<PFN_cuMemRelease_v10020>("cuMemRelease")),
      map_(driver_function<PFN_cuMemMap_v10020>("cuMemMap")),
      unmap_(driver_function<PFN_cuMemUnmap_v10020>("cuMemUnmap")),
      set_access_(driver_function<PFN_cuMemSetAccess_v10020>("cuMemSetAccess")) {
  kind_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  kind_.location.id = current_gpu();
}

void DriverPages::require_success(CUresult result, Doing doing) const {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  if (error_name_(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw OutOfMemory(fmt::format("the NVIDIA driver refused {}: {}, at {}", doing.text, name,
                                  place_of(doing.at)));
  throw DeviceError(fmt::format("the NVIDIA driver refused {}: {} ({}), at {}", doing.text, name,
                                static_cast<int>(result), place_of(doing.at)));
}

Bytes DriverPages::granularity() const {
  std::size_t bytes = 0;
  require_success(granularity_(&bytes, &kind_, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                  "to tell its page size");
  if (bytes == 0) throw DeviceError("the NVIDIA driver reports pages of 0 bytes");
  return bytes;
}

bool DriverPages::is_supported() const {
  int value = 0;
  require_success(device_attribute_(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                    kind_.location.id),
                  "to tell whether the GPU has virtual memory");
  return value != 0;
}

std::byte* DriverPages::reserve(Bytes bytes, Bytes alignment) const {
  CUdeviceptr address = 0;
  require_success(reserve_(&address, bytes, alignment, /*addr=*/0, /*flags=*/0),
                  "to reserve addresses");
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Never throws, like MappedPages::unmap: destructors call it, after an earlier error if at all.
void DriverPages::release(std::byte* addresses, Bytes bytes) const {
  release_(address_of(addresses), bytes);
}

DriverPages::Page DriverPages::create(Bytes size) {
  CUmemGenericAllocationHandle page = 0;
  require_success(create_(&page, size, &kind_, /*flags=*/0), "to create a page");
  return page;
}

void DriverPages::destroy(Page page) { require_success(destroy_(page), "to release a page"); }

void DriverPages::map(std::byte* at, Bytes size, Page page) {
  require_success(map_(address_of(at), size, /*offset=*/0, page, /*flags=*/0), "to map a page");
}

void DriverPages::unmap(std::byte* at, Bytes size) {
  require_success(unmap_(address_of(at), size), "to unmap a page");
}

void DriverPages::allow_access(std::byte* at, Bytes bytes) {
  CUmemAccessDesc_v1 access{};
  access.location = kind_.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  require_success(set_access_(address_of(at), bytes, &access, 1), "access to mapped pages");
}

}  // namespace headroom::cuda

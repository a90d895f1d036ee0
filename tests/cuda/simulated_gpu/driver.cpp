// The driver's virtual memory: pages of an in-memory file, mapped on request. As in the real
// driver, mapping and granting access are separate calls, and neither waits for queued work.
#include <cudaTypedefs.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <string_view>

#include "tests/cuda/simulated_gpu/memory.h"
#include "tests/cuda/simulated_gpu/refusal.h"
#include "tests/cuda/simulated_gpu/streams.h"

using namespace headroom::simulated_gpu;

namespace {

struct Page {
  std::size_t bytes;
  std::size_t offset;  // in the file
  bool released = false;
  bool mapped = false;
};

struct Mapping {
  CUmemGenericAllocationHandle page;
  std::size_t bytes;
};

struct VirtualMemory {
  int file = memfd_create("simulated GPU", MFD_CLOEXEC);
  std::size_t end = 0;  // of the file
  std::map<CUmemGenericAllocationHandle, Page> pages;
  CUmemGenericAllocationHandle last = 0;
  std::map<CUdeviceptr, std::size_t> reserved;
  std::map<CUdeviceptr, Mapping> mapped;
};

VirtualMemory& virtual_memory() {
  static VirtualMemory one;
  return one;
}

std::byte* at(CUdeviceptr address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

bool is_this_gpu(const CUmemAllocationProp_v1* kind) {
  return kind->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         kind->location.type == CU_MEM_LOCATION_TYPE_DEVICE && kind->location.id == 0;
}

void forget_if_unused(std::map<CUmemGenericAllocationHandle, Page>::iterator page) {
  if (!page->second.released || page->second.mapped) return;
  fallocate(virtual_memory().file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(page->second.offset), static_cast<off_t>(page->second.bytes));
  credit(page->second.bytes);
  virtual_memory().pages.erase(page);
}

CUresult device_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  const Lock lock;
  if (device != 0 || attribute != CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
    return CUDA_ERROR_INVALID_VALUE;
  *value = 1;
  return CUDA_SUCCESS;
}

CUresult error_name(CUresult, const char** name) {
  *name = "an error of the simulated driver";
  return CUDA_SUCCESS;
}

CUresult granularity(std::size_t* bytes, const CUmemAllocationProp_v1* kind,
                     CUmemAllocationGranularity_flags) {
  const Lock lock;
  if (is_refused()) return CUDA_ERROR_UNKNOWN;
  if (!is_this_gpu(kind)) return CUDA_ERROR_INVALID_VALUE;
  *bytes = kPage;
  return CUDA_SUCCESS;
}

CUresult reserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment, CUdeviceptr wanted,
                 unsigned long long flags) {
  const Lock lock;
  if (is_refused()) return CUDA_ERROR_UNKNOWN;
  if (bytes == 0 || bytes % kPage != 0 || alignment > kPage || wanted != 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  // Reserves more than requested so that it can start at a page boundary; the rest stays reserved.
  void* const data =
      mmap(nullptr, bytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = (reinterpret_cast<CUdeviceptr>(data) + kPage - 1) / kPage * kPage;
  virtual_memory().reserved[*address] = bytes;
  return CUDA_SUCCESS;
}

CUresult free_addresses(CUdeviceptr address, std::size_t bytes) {
  const Lock lock;
  const auto found = virtual_memory().reserved.find(address);
  if (found == virtual_memory().reserved.end() || found->second != bytes)
    return CUDA_ERROR_INVALID_VALUE;
  const auto mapped = virtual_memory().mapped.lower_bound(address);
  if (mapped != virtual_memory().mapped.end() && mapped->first < address + bytes)
    return CUDA_ERROR_INVALID_VALUE;
  munmap(at(address), bytes);
  virtual_memory().reserved.erase(found);
  return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* page, std::size_t bytes,
                const CUmemAllocationProp_v1* kind, unsigned long long flags) {
  const Lock lock;
  VirtualMemory& memory = virtual_memory();
  if (!is_this_gpu(kind) || bytes == 0 || bytes % kPage != 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (!charge(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (ftruncate(memory.file, static_cast<off_t>(memory.end + bytes)) != 0) {
    credit(bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *page = ++memory.last;
  memory.pages[*page] = {.bytes = bytes, .offset = memory.end};
  memory.end += bytes;
  return CUDA_SUCCESS;
}

CUresult release(CUmemGenericAllocationHandle page) {
  const Lock lock;
  const auto found = virtual_memory().pages.find(page);
  if (found == virtual_memory().pages.end() || found->second.released)
    return CUDA_ERROR_INVALID_VALUE;
  found->second.released = true;
  forget_if_unused(found);
  return CUDA_SUCCESS;
}

CUresult map_page(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const Lock lock;
  if (is_refused()) return CUDA_ERROR_UNKNOWN;
  VirtualMemory& memory = virtual_memory();
  const auto page = memory.pages.find(handle);
  if (page == memory.pages.end() || page->second.mapped || page->second.bytes != bytes ||
      offset != 0 || flags != 0 || address % kPage != 0 || memory.mapped.contains(address))
    return CUDA_ERROR_INVALID_VALUE;
  auto place = memory.reserved.upper_bound(address);
  if (place == memory.reserved.begin()) return CUDA_ERROR_INVALID_VALUE;
  if (--place; address + bytes > place->first + place->second) return CUDA_ERROR_INVALID_VALUE;
  if (mmap(at(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory.file,
           static_cast<off_t>(page->second.offset)) == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  memory.mapped[address] = {handle, bytes};
  page->second.mapped = true;
  return CUDA_SUCCESS;
}

CUresult unmap_page(CUdeviceptr address, std::size_t bytes) {
  const Lock lock;
  VirtualMemory& memory = virtual_memory();
  const auto found = memory.mapped.find(address);
  if (found == memory.mapped.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  hide(at(address));
  mmap(at(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
       0);
  const auto page = memory.pages.find(found->second.page);
  page->second.mapped = false;
  memory.mapped.erase(found);
  forget_if_unused(page);
  return CUDA_SUCCESS;
}

CUresult set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc_v1* access,
                    std::size_t count) {
  const Lock lock;
  if (is_refused()) return CUDA_ERROR_UNKNOWN;
  if (count != 1 || access->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      access->location.id != 0 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    return CUDA_ERROR_INVALID_VALUE;
  for (CUdeviceptr page = address; page < address + bytes;) {
    const auto found = virtual_memory().mapped.find(page);
    if (found == virtual_memory().mapped.end()) return CUDA_ERROR_INVALID_VALUE;
    show(at(page), found->second.bytes);
    page += found->second.bytes;
  }
  return CUDA_SUCCESS;
}

// Returns a pointer to each function, of the type to which its callers cast it back.
void* function_named(std::string_view name) {
  const auto any = [](auto* function) { return reinterpret_cast<void*>(function); };
  if (name == "cuDeviceGetAttribute") return any(device_attribute);
  if (name == "cuGetErrorName") return any(error_name);
  if (name == "cuMemGetAllocationGranularity") return any(granularity);
  if (name == "cuMemAddressReserve") return any(reserve);
  if (name == "cuMemAddressFree") return any(free_addresses);
  if (name == "cuMemCreate") return any(create);
  if (name == "cuMemRelease") return any(release);
  if (name == "cuMemMap") return any(map_page);
  if (name == "cuMemUnmap") return any(unmap_page);
  if (name == "cuMemSetAccess") return any(set_access);
  return nullptr;
}

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  *function = function_named(name);
  *found = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

// The driver's memory: allocation, copies, pointers and virtual memory management.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/contents.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/host_memory.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;
using DevicePointer = unsigned long long;

// Defined in devices.cpp and in the runtime, whose memory pools and streams are those of the
// driver.
extern "C" {
int cuDevicePrimaryCtxRetain(void** context, int device);
int cudaDeviceGetDefaultMemPool(void** pool, int device);
int cudaMemPoolGetAttribute(void* pool, int attribute, void* value);
int cudaMemPoolSetAttribute(void* pool, int attribute, const void* value);
int cudaMemPoolTrimTo(void* pool, std::size_t bytes);
int cudaMallocAsync(void** address, std::size_t bytes, void* stream);
int cudaMallocFromPoolAsync(void** address, std::size_t bytes, void* pool, void* stream);
int cudaDeviceSynchronize();
int cudaStreamSynchronize(void* stream);
int cudaEventSynchronize(void* event);
}

static void* as_pointer(DevicePointer address) { return reinterpret_cast<void*>(address); }

HEADROOM_EXPORT int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = free_bytes(current_device());
  *total = card().memory_bytes;
  return kSuccess;
}
HEADROOM_EXPORT int cuMemAlloc_v2(DevicePointer* address, std::size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  void* block = allocate(bytes, current_device());
  *address = reinterpret_cast<DevicePointer>(block);
  return block != nullptr ? kSuccess : kOutOfMemory;
}
HEADROOM_EXPORT int cuMemAllocAsync(DevicePointer* address, std::size_t bytes, void* stream) {
  if (bytes == 0) return kInvalidValue;
  return cudaMallocAsync(reinterpret_cast<void**>(address), bytes, stream);
}
HEADROOM_EXPORT int cuMemAllocFromPoolAsync(DevicePointer* address, std::size_t bytes, void* pool,
                                            void* stream) {
  if (bytes == 0) return kInvalidValue;
  return cudaMallocFromPoolAsync(reinterpret_cast<void**>(address), bytes, pool, stream);
}
HEADROOM_EXPORT int cuCtxSynchronize() { return cudaDeviceSynchronize(); }
HEADROOM_EXPORT int cuStreamSynchronize(void* stream) { return cudaStreamSynchronize(stream); }
HEADROOM_EXPORT int cuEventSynchronize(void* event) { return cudaEventSynchronize(event); }
// The first fields of CUmemPoolProps.
struct PoolProperties {
  int allocation_type, handle_types;
  int location_type, location_id;
};
HEADROOM_EXPORT int cuMemPoolCreate(void** pool, const PoolProperties* properties) {
  return cudaDeviceGetDefaultMemPool(pool, properties->location_id);
}
HEADROOM_EXPORT int cuDeviceGetDefaultMemPool(void** pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
HEADROOM_EXPORT int cuDeviceGetMemPool(void** pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
HEADROOM_EXPORT int cuMemPoolGetAttribute(void* pool, int attribute, void* value) {
  return cudaMemPoolGetAttribute(pool, attribute, value);
}
HEADROOM_EXPORT int cuMemPoolSetAttribute(void* pool, int attribute, const void* value) {
  return cudaMemPoolSetAttribute(pool, attribute, value);
}
HEADROOM_EXPORT int cuMemPoolTrimTo(void* pool, std::size_t bytes) {
  return cudaMemPoolTrimTo(pool, bytes);
}
HEADROOM_EXPORT int cuMemFree_v2(DevicePointer address) {
  void* block = as_pointer(address);
  return block == nullptr || release(block) || release_managed(block) ? kSuccess : kInvalidValue;
}
HEADROOM_EXPORT int cuMemFreeAsync(DevicePointer address, void*) { return cuMemFree_v2(address); }
HEADROOM_EXPORT int cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  *address = allocate_host(bytes);
  return *address != nullptr || bytes == 0 ? kSuccess : kOutOfMemory;
}
HEADROOM_EXPORT int cuMemFreeHost(void* address) {
  return address == nullptr || release_host(address) ? kSuccess : kInvalidValue;
}
HEADROOM_EXPORT int cuMemHostGetDevicePointer_v2(DevicePointer* device, void* host, unsigned) {
  *device = reinterpret_cast<DevicePointer>(host);
  return kSuccess;
}
HEADROOM_EXPORT int cuMemAllocManaged(DevicePointer* address, std::size_t bytes, unsigned) {
  void* block = allocate_managed(bytes);
  *address = reinterpret_cast<DevicePointer>(block);
  return block != nullptr ? kSuccess : kOutOfMemory;
}
HEADROOM_EXPORT int cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned) {
  register_host(address, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cuMemHostUnregister(void* address) {
  unregister_host(address);
  return kSuccess;
}
// Whether a program that copies these bytes to the host gets what they would be on a real card.
HEADROOM_EXPORT int headroom_gpu_knows(const void* address, std::size_t bytes) {
  return is_known(address, bytes) ? 1 : 0;
}
HEADROOM_EXPORT void headroom_gpu_keep(const void* address, std::size_t bytes,
                                       const void* contents) {
  keep_contents(address, bytes, contents);
}
HEADROOM_EXPORT void headroom_gpu_forget(const void* address, std::size_t bytes) {
  forget_contents(address, bytes);
}
HEADROOM_EXPORT void headroom_gpu_read_unknown_ones(int count) { read_unknown_ones(count); }
HEADROOM_EXPORT int cuMemGetAddressRange_v2(DevicePointer* begin, std::size_t* bytes,
                                            DevicePointer address) {
  const auto range = find(as_pointer(address));
  if (!range) return kInvalidValue;
  if (begin != nullptr) *begin = range->begin;
  if (bytes != nullptr) *bytes = range->bytes;
  return kSuccess;
}
HEADROOM_EXPORT int cuMemcpyHtoD_v2(DevicePointer to, const void* from, std::size_t bytes) {
  copy(as_pointer(to), from, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t bytes,
                                         void*) {
  return cuMemcpyHtoD_v2(to, from, bytes);
}
HEADROOM_EXPORT int cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t bytes) {
  copy(to, as_pointer(from), bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t bytes, void*) {
  return cuMemcpyDtoH_v2(to, from, bytes);
}
HEADROOM_EXPORT int cuMemcpyDtoD_v2(DevicePointer to, DevicePointer from, std::size_t bytes) {
  copy(as_pointer(to), as_pointer(from), bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, std::size_t bytes,
                                         void*) {
  return cuMemcpyDtoD_v2(to, from, bytes);
}
HEADROOM_EXPORT int cuMemcpyAsync(DevicePointer to, DevicePointer from, std::size_t bytes, void*) {
  return cuMemcpyDtoD_v2(to, from, bytes);
}
HEADROOM_EXPORT int cuMemcpyPeer(DevicePointer to, void*, DevicePointer from, void*,
                                 std::size_t bytes) {
  return cuMemcpyDtoD_v2(to, from, bytes);
}
HEADROOM_EXPORT int cuMemcpyPeerAsync(DevicePointer to, void*, DevicePointer from, void*,
                                      std::size_t bytes, void*) {
  return cuMemcpyDtoD_v2(to, from, bytes);
}
HEADROOM_EXPORT int cuMemsetD8Async(DevicePointer to, unsigned char value, std::size_t bytes,
                                    void*) {
  fill(as_pointer(to), value, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cuMemsetD8_v2(DevicePointer to, unsigned char value, std::size_t bytes) {
  fill(as_pointer(to), value, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cuMemsetD32Async(DevicePointer to, unsigned value, std::size_t count, void*) {
  const auto low = static_cast<unsigned char>(value);
  if (value == low * 0x01010101u)
    fill(as_pointer(to), low, count * sizeof value);
  else if (count * sizeof value > kKeptBytes)
    forget_contents(as_pointer(to), count * sizeof value);
  else
    copy(as_pointer(to), std::vector(count, value).data(), count * sizeof value);
  return kSuccess;
}
HEADROOM_EXPORT int cuMemsetD32_v2(DevicePointer to, unsigned value, std::size_t count) {
  return cuMemsetD32Async(to, value, count, nullptr);
}
HEADROOM_EXPORT int cuStreamWriteValue32_v2(void*, DevicePointer to, std::uint32_t value,
                                            unsigned) {
  copy(as_pointer(to), &value, sizeof value);
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamWriteValue64_v2(void*, DevicePointer to, std::uint64_t value,
                                            unsigned) {
  copy(as_pointer(to), &value, sizeof value);
  return kSuccess;
}
HEADROOM_EXPORT int cuPointerGetAttribute(void* out, int attribute, DevicePointer address) {
  const auto range = find(as_pointer(address));
  const bool managed = is_managed(as_pointer(address));
  if (!range && !managed && !is_page_locked(as_pointer(address))) return kInvalidValue;
  const int device = range ? range->device : current_device();
  switch (attribute) {
    case 1:
      return cuDevicePrimaryCtxRetain(static_cast<void**>(out), device);
    case 2:
      *static_cast<unsigned*>(out) = range || managed ? 2 : 1;  // device memory, host memory
      return kSuccess;
    case 3:
      *static_cast<DevicePointer*>(out) = address;
      return kSuccess;
    case 8:
      *static_cast<unsigned*>(out) = managed ? 1 : 0;
      return kSuccess;
    case 9:
      *static_cast<int*>(out) = device;
      return kSuccess;
    case 11:
      if (!range) return kNotSupported;
      *static_cast<DevicePointer*>(out) = range->begin;
      return kSuccess;
    case 12:
      if (!range) return kNotSupported;
      *static_cast<std::size_t*>(out) = range->bytes;
      return kSuccess;
    default:
      return kNotSupported;
  }
}
HEADROOM_EXPORT int cuPointerGetAttributes(unsigned count, const int* attributes, void** values,
                                           DevicePointer address) {
  for (unsigned i = 0; i < count; ++i) cuPointerGetAttribute(values[i], attributes[i], address);
  return kSuccess;
}

// Virtual memory management

// The first fields of CUmemAllocationProp.
struct AllocationProperties {
  int type, handle_types;
  int location_type, location_id;
};
HEADROOM_EXPORT int cuMemGetAllocationGranularity(std::size_t* bytes, const void*, int) {
  *bytes = headroom::kGranule;
  return kSuccess;
}
HEADROOM_EXPORT int cuMemAddressReserve(DevicePointer* address, std::size_t bytes, std::size_t,
                                        DevicePointer, unsigned long long) {
  void* range = reserve_addresses(bytes);
  *address = reinterpret_cast<DevicePointer>(range);
  return range != nullptr ? kSuccess : kOutOfMemory;
}
HEADROOM_EXPORT int cuMemAddressFree(DevicePointer address, std::size_t) {
  return free_addresses(as_pointer(address)) ? kSuccess : kInvalidValue;
}
HEADROOM_EXPORT int cuMemCreate(unsigned long long* handle, std::size_t bytes,
                                const AllocationProperties* properties, unsigned long long) {
  *handle = create_physical(bytes, properties->location_id);
  return *handle != 0 ? kSuccess : kOutOfMemory;
}
// The descriptor of an empty file stands for the memory, and another process may map it.
constexpr int kFileDescriptor = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
HEADROOM_EXPORT int cuMemExportToShareableHandle(void* out, unsigned long long, int type,
                                                 unsigned long long) {
  if (type != kFileDescriptor) return kNotSupported;
  const int file = memfd_create("memory of a virtual GPU", MFD_CLOEXEC);
  *static_cast<int*>(out) = file;
  return file >= 0 ? kSuccess : kOutOfMemory;
}
HEADROOM_EXPORT int cuMemImportFromShareableHandle(unsigned long long* handle, void*, int type) {
  if (type != kFileDescriptor) return kNotSupported;
  *handle = import_physical(current_device());
  return kSuccess;
}
HEADROOM_EXPORT int cuMemRelease(unsigned long long handle) {
  return release_physical(handle) ? kSuccess : kInvalidValue;
}
HEADROOM_EXPORT int cuMemMap(DevicePointer address, std::size_t bytes, std::size_t,
                             unsigned long long handle, unsigned long long) {
  return map_physical(as_pointer(address), bytes, handle) ? kSuccess : kInvalidValue;
}
HEADROOM_EXPORT int cuMemUnmap(DevicePointer address, std::size_t bytes) {
  return unmap(as_pointer(address), bytes) ? kSuccess : kInvalidValue;
}
HEADROOM_EXPORT int cuMemSetAccess(DevicePointer, std::size_t, const void*, std::size_t) {
  return kSuccess;
}
HEADROOM_EXPORT int cuMemRetainAllocationHandle(unsigned long long* handle, void* address) {
  *handle = retain_physical(address);
  return *handle != 0 ? kSuccess : kInvalidValue;
}

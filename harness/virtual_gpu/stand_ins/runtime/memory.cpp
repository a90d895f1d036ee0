// The runtime's memory: allocation, pools, page-locked memory, copies and pointers.
#include <cstring>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/contents.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/host_memory.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;

namespace {

// Every pool of a device is the driver's pool. Its handle is this number plus 16 for each device
// before it.
constexpr std::uintptr_t kFirstPool = 0x5000, kBetweenPools = 16;

int device_of_pool(void* pool) {
  return static_cast<int>((reinterpret_cast<std::uintptr_t>(pool) - kFirstPool) / kBetweenPools);
}

// A handle that a process passes to another one, which then uses the same memory.
struct HandleOfMemory {
  std::size_t bytes;
  char reserved[56];
};
struct HandleOfEvent {
  char reserved[64];
};

// cudaMemPoolAttr
constexpr int kThreshold = 4, kHeld = 5, kMostHeld = 6, kUsed = 7, kMostUsed = 8;

}  // namespace

HEADROOM_EXPORT int cudaMalloc(void** address, std::size_t bytes) {
  *address = allocate(bytes, current_device());
  return *address != nullptr || bytes == 0 ? kSuccess : failed(kOutOfMemory);
}
HEADROOM_EXPORT int cudaFree(void* address) {
  return address == nullptr || release(address) || release_managed(address) ? kSuccess
                                                                            : failed(kInvalidValue);
}
HEADROOM_EXPORT int cudaMallocAsync(void** address, std::size_t bytes, void*) {
  *address = allocate_from_pool(bytes, current_device());
  return *address != nullptr || bytes == 0 ? kSuccess : failed(kOutOfMemory);
}
HEADROOM_EXPORT int cudaMallocFromPoolAsync(void** address, std::size_t bytes, void* pool, void*) {
  *address = allocate_from_pool(bytes, device_of_pool(pool));
  return *address != nullptr || bytes == 0 ? kSuccess : failed(kOutOfMemory);
}
HEADROOM_EXPORT int cudaFreeAsync(void* address, void*) { return cudaFree(address); }
HEADROOM_EXPORT int cudaMallocManaged(void** address, std::size_t bytes, unsigned) {
  *address = allocate_managed(bytes);
  return *address != nullptr || bytes == 0 ? kSuccess : failed(kOutOfMemory);
}
HEADROOM_EXPORT int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = free_bytes(current_device());
  *total = card().memory_bytes;
  return kSuccess;
}
HEADROOM_EXPORT int cudaDeviceGetDefaultMemPool(void** pool, int device) {
  *pool = reinterpret_cast<void*>(kFirstPool + static_cast<std::uintptr_t>(device) * kBetweenPools);
  return kSuccess;
}
HEADROOM_EXPORT int cudaDeviceGetMemPool(void** pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
HEADROOM_EXPORT int cudaMemPoolGetAttribute(void* handle, int attribute, void* value) {
  if (attribute < kThreshold) {
    std::memset(value, 0, sizeof(int));
    return kSuccess;
  }
  std::uint64_t bytes = 0;
  with_pool(device_of_pool(handle), [&](const headroom::DriverPool& pool) {
    bytes = attribute == kThreshold  ? pool.release_threshold()
            : attribute == kHeld     ? pool.held_bytes()
            : attribute == kMostHeld ? pool.most_held()
            : attribute == kUsed     ? pool.used_bytes()
                                     : pool.most_used();
  });
  std::memcpy(value, &bytes, sizeof bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemPoolSetAttribute(void* handle, int attribute, const void* value) {
  with_pool(device_of_pool(handle), [&](headroom::DriverPool& pool) {
    if (attribute == kThreshold) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, value, sizeof bytes);
      pool.set_release_threshold(bytes);
    }
    if (attribute == kMostHeld) pool.forget_most_held();
    if (attribute == kMostUsed) pool.forget_most_used();
  });
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemPoolTrimTo(void* handle, std::size_t bytes) {
  with_pool(device_of_pool(handle), [bytes](headroom::DriverPool& pool) { pool.trim_to(bytes); });
  return kSuccess;
}
// No graph allocates memory of its own here.
HEADROOM_EXPORT int cudaDeviceGetGraphMemAttribute(int, int, std::uint64_t* bytes) {
  *bytes = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  *address = allocate_host(bytes);
  return *address != nullptr || bytes == 0 ? kSuccess : failed(kOutOfMemory);
}
HEADROOM_EXPORT int cudaMallocHost(void** address, std::size_t bytes) {
  return cudaHostAlloc(address, bytes, 0);
}
HEADROOM_EXPORT int cudaFreeHost(void* address) {
  return address == nullptr || release_host(address) ? kSuccess : failed(kInvalidValue);
}
HEADROOM_EXPORT int cudaHostRegister(void* address, std::size_t bytes, unsigned) {
  register_host(address, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaHostUnregister(void* address) {
  unregister_host(address);
  return kSuccess;
}
HEADROOM_EXPORT int cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemcpy(void* to, const void* from, std::size_t bytes, int) {
  copy(to, from, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void*) {
  copy(to, from, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                        void*) {
  copy(to, from, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                      std::size_t from_pitch, std::size_t width, std::size_t height,
                                      int, void*) {
  for (std::size_t row = 0; row < height; ++row)
    copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
         width);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemset(void* to, int value, std::size_t bytes) {
  fill(to, static_cast<unsigned char>(value), bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemsetAsync(void* to, int value, std::size_t bytes, void*) {
  return cudaMemset(to, value, bytes);
}
// The fields of cudaPointerAttributes that CUDA 12 and 13 share.
struct PointerAttributes {
  int type;  // 0 unknown, 1 host, 2 device, 3 managed
  int device;
  void* device_pointer;
  void* host_pointer;
};
HEADROOM_EXPORT int cudaPointerGetAttributes(PointerAttributes* out, const void* address) {
  auto* pointer = const_cast<void*>(address);
  if (const auto range = find(address))
    *out = {2, range->device, pointer, nullptr};
  else if (is_page_locked(address))
    *out = {1, current_device(), pointer, pointer};
  else if (is_managed(address))
    *out = {3, current_device(), pointer, pointer};
  else
    *out = {0, -1, nullptr, pointer};
  return kSuccess;
}
HEADROOM_EXPORT int cudaMallocPitch(void** address, std::size_t* pitch, std::size_t width,
                                    std::size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(address, *pitch * height);
}
HEADROOM_EXPORT int cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  copy(to, from, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from,
                                 std::size_t from_pitch, std::size_t width, std::size_t height,
                                 int kind) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}

HEADROOM_EXPORT int cudaIpcGetMemHandle(HandleOfMemory* handle, const void* address) {
  const auto held = find(address);
  if (!held) return failed(kInvalidValue);
  *handle = {held->bytes, {}};
  return kSuccess;
}
// This process does not know what the other one wrote there: the contents read as zeros.
HEADROOM_EXPORT int cudaIpcOpenMemHandle(void** address, HandleOfMemory handle, unsigned) {
  *address = allocate_uncharged(handle.bytes, current_device());
  return *address != nullptr ? kSuccess : failed(kOutOfMemory);
}
HEADROOM_EXPORT int cudaIpcCloseMemHandle(void* address) {
  release_uncharged(address);
  return kSuccess;
}
HEADROOM_EXPORT int cudaIpcGetEventHandle(HandleOfEvent* handle, void*) {
  *handle = {};
  return kSuccess;
}
HEADROOM_EXPORT int cudaIpcOpenEventHandle(void** event, HandleOfEvent) {
  *event = new_object();
  return kSuccess;
}

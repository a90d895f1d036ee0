// Stands in for the CUDA driver's documented interface (libcuda), as far as frameworks call it by
// themselves. What NVIDIA's own libraries say to the driver in private is not imitated.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/contents.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;
using DevicePointer = unsigned long long;

// These functions are defined in runtime.cpp, because the driver and the runtime answer alike about
// errors and memory pools.
extern "C" {
const char* cudaGetErrorString(int error);
int cudaDeviceGetDefaultMemPool(void** pool, int device);
int cudaMemPoolGetAttribute(void* pool, int attribute, void* value);
}

namespace {

// A context is a device's primary one: the address of its entry here.
char contexts[kMaxDevices];
thread_local void* context_of_thread = nullptr;

void* as_pointer(DevicePointer address) { return reinterpret_cast<void*>(address); }

bool is_device(int device) { return device >= 0 && device < card().devices; }

void* current_context() {
  return context_of_thread != nullptr ? context_of_thread : &contexts[current_device()];
}

void set_context(void* context) {
  context_of_thread = context;
  auto* entry = static_cast<char*>(context);
  if (entry >= contexts && entry < contexts + kMaxDevices)
    set_current_device(static_cast<int>(entry - contexts));
}

}  // namespace

// Start, devices and contexts

HEADROOM_EXPORT int cuInit(unsigned) { return kSuccess; }
HEADROOM_EXPORT int cuDriverGetVersion(int* version) {
  *version = card().driver_version;
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGetCount(int* count) {
  *count = card().devices;
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGet(int* device, int ordinal) {
  if (!is_device(ordinal)) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<std::size_t>(size), "%s", card().name.c_str());
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = card().memory_bytes;
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGetUuid(char* uuid, int device) {
  std::memset(uuid, device + 1, 16);
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGetUuid_v2(char* uuid, int device) {
  return cuDeviceGetUuid(uuid, device);
}
HEADROOM_EXPORT int cuDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:00:%02x.0", 4 + device);
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = device_attribute(attribute);
  return kSuccess;
}
// 0 of every attribute: no access between the cards.
HEADROOM_EXPORT int cuDeviceGetP2PAttribute(int* value, int, int, int) {
  *value = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceComputeCapability(int* major, int* minor, int) {
  *major = card().compute_major;
  *minor = card().compute_minor;
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (!is_device(device)) return kInvalidDevice;
  *context = &contexts[device];
  return kSuccess;
}
HEADROOM_EXPORT int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetCurrent(void** context) {
  *context = current_context();
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxSetCurrent(void* context) {
  set_context(context);
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxPushCurrent_v2(void* context) { return cuCtxSetCurrent(context); }
HEADROOM_EXPORT int cuCtxPopCurrent_v2(void** context) {
  if (context != nullptr) *context = current_context();
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetDevice(int* device) {
  *device = current_device();
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamGetCtx(void*, void** context) { return cuCtxGetCurrent(context); }
HEADROOM_EXPORT int cuGetErrorName(int error, const char** name) {
  switch (error) {
    case kSuccess:
      *name = "CUDA_SUCCESS";
      break;
    case kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case kInvalidDevice:
      *name = "CUDA_ERROR_INVALID_DEVICE";
      break;
    case kNotFound:
      *name = "CUDA_ERROR_NOT_FOUND";
      break;
    case kNotSupported:
      *name = "CUDA_ERROR_NOT_SUPPORTED";
      break;
    default:
      *name = "CUDA_ERROR_UNKNOWN";
  }
  return kSuccess;
}
HEADROOM_EXPORT int cuGetErrorString(int error, const char** text) {
  *text = cudaGetErrorString(error);
  return kSuccess;
}
// Private tables between NVIDIA's libraries and driver: there are none here.
HEADROOM_EXPORT int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNotFound;
}
HEADROOM_EXPORT int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long,
                                        int* result) {
  *function = function_named(name);
  if (result != nullptr) *result = *function != nullptr ? 0 : 1;
  return *function != nullptr ? kSuccess : kNotFound;
}
HEADROOM_EXPORT int cuGetProcAddress(const char* name, void** function, int version,
                                     unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

// Memory

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
HEADROOM_EXPORT int cuMemAllocAsync(DevicePointer* address, std::size_t bytes, void*) {
  return cuMemAlloc_v2(address, bytes);
}
HEADROOM_EXPORT int cuMemAllocFromPoolAsync(DevicePointer* address, std::size_t bytes, void*,
                                            void*) {
  return cuMemAlloc_v2(address, bytes);
}
// The beginning of CUmemPoolProps.
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
HEADROOM_EXPORT int cuMemFree_v2(DevicePointer address) {
  return address == 0 || release(as_pointer(address)) ? kSuccess : kInvalidValue;
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
  void* block = allocate_host(bytes);
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
// A pattern of four bytes is kept only where all four are alike.
HEADROOM_EXPORT int cuMemsetD32Async(DevicePointer to, unsigned value, std::size_t count, void*) {
  const auto low = static_cast<unsigned char>(value);
  if (value == low * 0x01010101u)
    fill(as_pointer(to), low, count * 4);
  else
    forget_contents(as_pointer(to), count * 4);
  return kSuccess;
}
HEADROOM_EXPORT int cuMemsetD32_v2(DevicePointer to, unsigned value, std::size_t count) {
  return cuMemsetD32Async(to, value, count, nullptr);
}
HEADROOM_EXPORT int cuPointerGetAttribute(void* out, int attribute, DevicePointer address) {
  const auto range = find(as_pointer(address));
  if (!range && attribute == 2 && is_page_locked(as_pointer(address))) {
    *static_cast<unsigned*>(out) = 1;  // host memory
    return kSuccess;
  }
  if (!range) return kInvalidValue;
  switch (attribute) {
    case 1:
      *static_cast<void**>(out) = &contexts[range->device];
      return kSuccess;
    case 2:
      *static_cast<unsigned*>(out) = 2;  // device memory
      return kSuccess;
    case 3:
      *static_cast<DevicePointer*>(out) = address;
      return kSuccess;
    case 8:
      *static_cast<unsigned*>(out) = 0;  // not managed
      return kSuccess;
    case 9:
      *static_cast<int*>(out) = range->device;
      return kSuccess;
    case 11:
      *static_cast<DevicePointer*>(out) = range->begin;
      return kSuccess;
    case 12:
      *static_cast<std::size_t*>(out) = range->bytes;
      return kSuccess;
    default:
      return kNotSupported;
  }
}

// Virtual memory management

// The beginning of CUmemAllocationProp.
struct AllocationProperties {
  int type, handle_types;
  int location_type, location_id;
};
HEADROOM_EXPORT int cuMemGetAllocationGranularity(std::size_t* bytes, const void*, int) {
  *bytes = kGranule;
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

// Streams, events and kernels

HEADROOM_EXPORT int cuStreamCreate(void** stream, unsigned) {
  *stream = new_handle();
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamCreateWithPriority(void** stream, unsigned, int) {
  *stream = new_handle();
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamGetPriority(void*, int* priority) {
  *priority = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamIsCapturing(void*, int* status) {
  *status = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamAddCallback(void* stream, void (*callback)(void*, int, void*),
                                        void* data, unsigned) {
  callback(stream, kSuccess, data);
  return kSuccess;
}
HEADROOM_EXPORT int cuLaunchHostFunc(void*, void (*function)(void*), void* data) {
  function(data);
  return kSuccess;
}
HEADROOM_EXPORT int cuEventCreate(void** event, unsigned) {
  *event = new_handle();
  return kSuccess;
}
HEADROOM_EXPORT int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 0.001f;
  return kSuccess;
}
// The driver's linker, to which a program gives code that it made itself: it links to nothing.
HEADROOM_EXPORT int cuLinkAddData_v2(void*, int, void*, std::size_t, const char*, unsigned, int*,
                                     void**) {
  return kSuccess;
}
HEADROOM_EXPORT int cuLinkComplete(void*, void** code, std::size_t* bytes) {
  static char nothing = 0;
  *code = &nothing;
  *bytes = 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuModuleLoadData(void** module, const void*) {
  *module = new_object();
  return kSuccess;
}
HEADROOM_EXPORT int cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) {
  return cuModuleLoadData(module, nullptr);
}
HEADROOM_EXPORT int cuModuleLoadFatBinary(void** module, const void*) {
  return cuModuleLoadData(module, nullptr);
}
HEADROOM_EXPORT int cuModuleLoad(void** module, const char*) {
  return cuModuleLoadData(module, nullptr);
}
HEADROOM_EXPORT int cuModuleGetFunction(void** function, void*, const char*) {
  *function = new_object();
  return kSuccess;
}
HEADROOM_EXPORT int cuFuncGetAttribute(int* value, int attribute, void*) {
  const int version = architecture_of_kernels();
  constexpr int kThreadsPerBlock = 0, kRegisters = 4, kPtxVersion = 5, kBinaryVersion = 6;
  *value = attribute == kThreadsPerBlock                             ? 1024
           : attribute == kRegisters                                 ? 32
           : attribute == kPtxVersion || attribute == kBinaryVersion ? version
                                                                     : 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads,
                                                                std::size_t) {
  *blocks = threads > 0 ? std::max(1, card().threads_per_multiprocessor / threads) : 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, void* function, int threads, std::size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
HEADROOM_EXPORT int cuOccupancyMaxPotentialBlockSize(int* grid, int* threads, void*, void*,
                                                     std::size_t, int limit) {
  *threads = limit > 0 ? std::min(limit, 1024) : 1024;
  *grid = card().multiprocessors * std::max(1, card().threads_per_multiprocessor / *threads);
  return kSuccess;
}
HEADROOM_EXPORT int cuLaunchKernel() {
  ++record().kernel_launches;
  return kSuccess;
}
HEADROOM_EXPORT int cuLaunchKernelEx() { return cuLaunchKernel(); }
HEADROOM_EXPORT int cuLaunchCooperativeKernel() { return cuLaunchKernel(); }

// Code that a program loads at run time, as cuDNN does: a library's kernels are functions, and its
// module is any object.

HEADROOM_EXPORT int cuLibraryLoadData(void** library) { return cuModuleLoadData(library, nullptr); }
HEADROOM_EXPORT int cuLibraryLoadFromFile(void** library) { return cuLibraryLoadData(library); }
HEADROOM_EXPORT int cuLibraryGetModule(void** module, void* library) {
  *module = library;
  return kSuccess;
}
HEADROOM_EXPORT int cuLibraryGetKernel(void** kernel, void*, const char*) {
  *kernel = new_object();
  return kSuccess;
}
HEADROOM_EXPORT int cuLibraryGetKernelCount(unsigned* count, void*) {
  *count = 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuLibraryEnumerateKernels(void** kernels, unsigned count, void*) {
  for (unsigned i = 0; i < count; ++i) kernels[i] = new_object();
  return kSuccess;
}
HEADROOM_EXPORT int cuKernelGetFunction(void** function, void* kernel) {
  *function = kernel;
  return kSuccess;
}
HEADROOM_EXPORT int cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}
HEADROOM_EXPORT int cuFuncGetModule(void** module, void* function) {
  *module = function;
  return kSuccess;
}
HEADROOM_EXPORT int cuFuncIsLoaded(int* loaded, void*) {
  *loaded = 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuOccupancyMaxActiveClusters(int* clusters, void*, const void*) {
  *clusters = 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamGetDevice(void*, int* device) {
  *device = current_device();
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamGetFlags(void*, unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamGetId(void* stream, unsigned long long* id) {
  *id = reinterpret_cast<DevicePointer>(stream);
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetId(void* context, unsigned long long* id) {
  *id = reinterpret_cast<DevicePointer>(context == nullptr ? current_context() : context);
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetFlags(unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetApiVersion(void*, unsigned* version) {
  *version = static_cast<unsigned>(card().driver_version);
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetLimit(std::size_t* value, int) {
  *value = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuPointerGetAttributes(unsigned count, const int* attributes, void** values,
                                           DevicePointer address) {
  for (unsigned i = 0; i < count; ++i) cuPointerGetAttribute(values[i], attributes[i], address);
  return kSuccess;
}
